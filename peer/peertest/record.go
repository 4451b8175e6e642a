package peertest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/topology"
)

// Recording is the world of a simulation: the duration of each step of each peer, the
// changes of links, and the joins and departures. A replay takes these over; of a real run, also the pace at which
// exchanges came about: no peer completes more of them in the time. Everything else is computed anew: losses are drawn again at the recorded rates, and the algorithm
// decides who exchanges with whom and when.
type Recording struct {
	Peers   int
	changes []Change
	steps   int               // of all peers
	took    [][]time.Duration // of each peer, one step after the other
	ended   [][]time.Duration // when each peer's exchanges ended, one after the other; empty if that is not known
	active  []int             // peers that began as active, the others as passive; nil if that is not known
}

// Bounds of a recording that is read.
const (
	maxRecordedLines = 1 << 24
	maxRecordedLine  = 1 << 17              // the first has the active ones of all peers
	longestRecorded  = 100 * 24 * time.Hour // of a step, and the latest
	recordingVersion = 1
)

// Line is one line of a recording, as JSON. The first has Version (1), Peers and Seed, and Active if the peers' roles are
// known; then come changes (Crash, Leave, Arrive, or "link" of Peer and Other, -1 for all), steps with the time that each
// took, exchanges ("exchange") that a peer completed one after the other and the time from one end to the next, those that were proposed and segments that were lost. Times are in nanoseconds from the beginning.
type Line struct {
	Version  int             `json:"world,omitempty"`
	Peers    int             `json:"peers,omitempty"`
	Seed     uint64          `json:"seed,omitempty"`
	Active   []int           `json:"active,omitempty"`
	At       time.Duration   `json:"at"`
	Did      string          `json:"did,omitempty"`
	Peer     int             `json:"peer"`
	Other    *int            `json:"other,omitempty"`
	Partner  topology.PeerID `json:"partner,omitempty"`
	Took     time.Duration   `json:"took,omitempty"`
	Times    int             `json:"times,omitempty"` // as many steps as this that took so long; 0 is one
	Segments int             `json:"segments,omitempty"`
	Link     *memnet.Link    `json:"link,omitempty"`
	Port     float64         `json:"port,omitempty"`
}

// Lines other than changes.
const (
	didStep    = "step"
	didPropose = "propose"
	didEnd     = "exchange"
	didLose    = "lose"
)

// recorder writes a recording. A nil one writes nothing.
type recorder struct {
	to      *bufio.Writer
	encoder *json.Encoder
	fault   error
}

func newRecorder(to io.Writer, s Simulation) *recorder {
	if to == nil {
		return nil
	}
	buffered := bufio.NewWriter(to)
	r := &recorder{to: buffered, encoder: json.NewEncoder(buffered)}
	r.write(Line{Version: recordingVersion, Peers: s.Peers, Seed: s.Seed})
	return r
}

func (r *recorder) write(l Line) {
	if r == nil {
		return
	}
	if err := r.encoder.Encode(l); err != nil && r.fault == nil {
		r.fault = fmt.Errorf("recording: %w", err)
	}
}

func (r *recorder) change(c Change) {
	l := Line{At: c.At, Did: c.Kind, Peer: c.Peer, Port: c.port}
	switch c.Kind {
	case relink:
		l.Other, l.Link = &c.other, &c.link
	case cut, heal:
		l.Other = &c.other
	}
	r.write(l)
}

// finish writes the rest, and returns an error if not everything could be written.
func (r *recorder) finish() error {
	if r == nil {
		return nil
	}
	if err := r.to.Flush(); err != nil && r.fault == nil {
		r.fault = fmt.Errorf("recording: %w", err)
	}
	return r.fault
}

// ErrRecording: the input is no recording of a simulated world.
var ErrRecording = errors.New("no recording of a simulated world")

// ReadRecording reads a recording written to Watch.Record. Errors other than those of the
// reader wrap ErrRecording.
func ReadRecording(from io.Reader) (*Recording, error) {
	r := &Recording{}
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, maxRecordedLine)
	for n := 1; scanner.Scan(); n++ {
		if n > maxRecordedLines {
			return nil, fmt.Errorf("%w: more than %d lines", ErrRecording, maxRecordedLines)
		}
		var l Line
		err := json.Unmarshal(scanner.Bytes(), &l)
		if err == nil {
			err = r.add(n, l)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrRecording, n, err)
		}
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrRecording, maxRecordedLine)
	} else if err != nil {
		return nil, fmt.Errorf("reading a recording: %w", err)
	}
	if r.Peers == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrRecording)
	}
	return r, nil
}

// add takes line n.
func (r *Recording) add(n int, l Line) error {
	if n == 1 {
		if l.Version != recordingVersion || l.Peers < 1 || l.Peers > maxSimulated {
			return fmt.Errorf("version %d of %d peers: want version %d of 1 to %d", l.Version, l.Peers, recordingVersion, maxSimulated)
		}
		r.Peers, r.active, r.took, r.ended = l.Peers, l.Active, make([][]time.Duration, l.Peers), make([][]time.Duration, l.Peers)
		return nil
	}
	switch l.Did {
	case didPropose, didLose:
		return nil
	case didStep, didEnd:
		if l.Peer < 0 || l.Peer >= r.Peers || l.Took < 0 || l.Times < 0 || l.At < 0 || l.Took > longestRecorded || l.At > longestRecorded || max(l.Times, 1) > maxRecordedLines-r.steps {
			return fmt.Errorf("%d times %s of peer %d of %d that took %s, at %s, after %d", l.Times, l.Did, l.Peer, r.Peers, l.Took, l.At, r.steps)
		}
		r.steps += max(l.Times, 1)
		for n := range max(l.Times, 1) {
			if l.Did == didEnd {
				r.ended[l.Peer] = append(r.ended[l.Peer], l.At+time.Duration(n+1)*l.Took)
			}
		}
		if l.Did == didEnd {
			return nil
		}
		r.took[l.Peer] = append(r.took[l.Peer], slices.Repeat([]time.Duration{l.Took}, max(l.Times, 1))...)
		return nil
	}
	c := Change{At: l.At, Kind: l.Did, Peer: l.Peer, port: l.Port}
	if l.Other != nil {
		c.other = *l.Other
	}
	if l.Link != nil {
		c.link = *l.Link
	}
	if err := c.validate(r.Peers); err != nil {
		return err
	}
	r.changes = append(r.changes, c)
	return nil
}

// role is that with which a peer begins.
func (r *Recording) role(peer int) topology.Role {
	switch {
	case r == nil || r.active == nil:
		return topology.Undecided
	case slices.Contains(r.active, peer):
		return topology.Active
	}
	return topology.Passive
}

// at is how long step number k of a peer took, counted over all its lives. If there are
// more steps than were recorded, the recorded ones repeat from the first.
func (r *Recording) at(peer, k int) time.Duration {
	if n := len(r.took[peer]); n > 0 {
		return r.took[peer][k%n]
	}
	return defaultStepTime
}

// ahead is by how many exchanges a peer of a replay may be ahead of itself in the run: its partners are others, and so is the
// moment at which each is free.
const ahead = 3

// ends is when exchange number n of a peer may end, counted over all its lives, from 1; later ones than were recorded come
// at the pace of the last quarter of those.
func (r *Recording) ends(peer, n int) time.Duration {
	ended := r.ended[peer]
	switch k := len(ended); {
	case k == 0 || n <= ahead:
		return 0
	case n-ahead <= k:
		return ended[n-ahead-1]
	default:
		quarter, before := max(k/4, 1), time.Duration(0)
		if quarter < k {
			before = ended[k-1-quarter]
		}
		return ended[k-1] + time.Duration(n-ahead-k)*((ended[k-1]-before)/time.Duration(quarter))
	}
}
