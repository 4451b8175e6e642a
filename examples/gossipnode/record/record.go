// Package record writes what a peer sees of a real run as a world that simulate --replay takes: who was there in which
// role, how fast each was, how often each exchanged, this peer's links, departures and deaths.
package record

import (
	"encoding/json"
	"io"
	"math"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/topology"
)

const (
	every    = time.Second      // between two looks
	maxLines = 1 << 17          // of steps and changes; what comes later is not recorded
	maxTimes = 1 << 24          // of steps and exchanges in all these lines: more is not read
	fastest  = time.Microsecond // what a member says is no step, or exchange, if it took less
	nearEnd  = 0.97             // of the work: who leaves then leaves because it is done
)

// Recorder collects what its peer sees. It belongs to one goroutine. The zero value is ready.
type Recorder struct {
	began, last time.Time // the first look, and the last
	seen        []member
	lines       []peertest.Line
	own         stats.Peer // at the last look
	times       int        // of the lines
	lost        int        // members that died and are not known yet: they are counted a moment before or after they are gone
}

// member is one of the run, whose number is its place; it made the last of its steps that are known at a moment.
type member struct {
	id     transport.PeerID
	active bool
	steps  uint64
	at     time.Duration
	// Of its exchanges that it has told of there were so many at a moment.
	exchanges uint64
	told      time.Duration
	here      bool
}

// See looks at the members that train, if it has not looked for a second.
func (r *Recorder) See(now time.Time, members []control.Member, own stats.Peer) {
	if now.Sub(r.last) < every {
		return
	}
	if r.last.IsZero() {
		r.began, r.own = now, own
	}
	r.last = now
	at, here := now.Sub(r.began), map[transport.PeerID]bool{}
	r.lost, r.own = r.lost+own.Lost-r.own.Lost, own
	for _, m := range members {
		if m.State == control.Idle {
			continue
		}
		here[m.ID] = true
		i := slices.IndexFunc(r.seen, func(n member) bool { return n.id == m.ID })
		if i < 0 && len(r.seen) == topology.MaxMembers {
			continue
		}
		if i < 0 {
			i, r.seen = len(r.seen), append(r.seen, member{id: m.ID, active: m.Role == topology.Active, here: at == 0})
		}
		n := &r.seen[i]
		if !n.here {
			r.add(peertest.Line{At: at, Did: peertest.Arrive, Peer: i})
		} else if made := m.Steps - min(n.steps, m.Steps); made > 0 && n.steps > 0 {
			r.repeat(peertest.Line{At: n.at, Did: "step", Peer: i}, at, made)
		}
		if met := m.Exchanges - min(n.exchanges, m.Exchanges); n.here && met > 0 {
			r.repeat(peertest.Line{At: n.told, Did: "exchange", Peer: i}, at, met)
		}
		if !n.here || m.Exchanges != n.exchanges {
			n.exchanges, n.told = m.Exchanges, at
		}
		if !n.here || m.Steps > n.steps {
			n.steps, n.at, n.here = m.Steps, at, true
		}
	}
	for i := range r.seen {
		if n := &r.seen[i]; n.here && !here[n.id] && own.Progress < nearEnd {
			r.add(peertest.Line{At: n.at, Did: peertest.Leave, Peer: i})
			n.here = false
		}
	}
	for i := len(r.lines) - 1; i >= 0 && r.lost > 0; i-- {
		if r.lines[i].Did == peertest.Leave {
			r.lines[i].Did, r.lost = peertest.Crash, r.lost-1
		}
	}
}

// repeat adds what a member says that it did so many times in a row, until a moment, unless that cannot be.
func (r *Recorder) repeat(l peertest.Line, until time.Duration, times uint64) {
	if times > uint64(maxTimes-r.times) || uint64(until-l.At)/times < uint64(fastest) {
		return
	}
	l.Took, l.Times = (until-l.At)/time.Duration(times), int(times)
	r.times += l.Times
	r.add(l)
}

func (r *Recorder) add(l peertest.Line) {
	if len(r.lines) < maxLines {
		r.lines = append(r.lines, l)
	}
}

// Write writes the file, whole or not at all. Links of others are taken to be as the mean of this peer's.
func (r *Recorder) Write(path string) error {
	all := []peertest.Line{{Version: 1, Peers: len(r.seen)}}
	links := slices.DeleteFunc(slices.Clone(r.own.Exchanges.Links), func(l stats.Link) bool { return !(l.Rate > 0 && l.Rate <= math.MaxFloat64) })
	var mean memnet.Link
	for i, n := range r.seen {
		if n.active {
			all[0].Active = append(all[0].Active, i)
		}
	}
	for _, l := range links {
		mean.Delay += l.Round / time.Duration(2*len(links))
		mean.Bandwidth += l.Rate / float64(len(links))
	}
	if everybody := -1; len(links) > 0 {
		all = append(all, peertest.Line{Did: "link", Peer: everybody, Other: &everybody, Link: &mean})
	}
	return files.Replace(path, 0o644, func(w io.Writer) (err error) {
		for _, l := range append(all, r.lines...) {
			if err == nil {
				err = json.NewEncoder(w).Encode(l)
			}
		}
		return err
	})
}
