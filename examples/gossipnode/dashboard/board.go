package dashboard

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/topology"
)

const (
	// pulseEvery is the time between two messages about exchanges, sampleEvery the time between two looks at the
	// peer.
	pulseEvery  = 250 * time.Millisecond
	sampleEvery = time.Second
	// maxPulses bounds the pairs of peers in one message.
	maxPulses = 256
	// maxHappenings bounds the events that are kept for later viewers.
	maxHappenings = 40
	// maxDetail bounds the text of an error, in characters.
	maxDetail = 300
)

// Peer is the part of a peer that its dashboard reads.
type Peer interface {
	Stats() stats.Peer
	Members() []control.Member
}

// Board collects the content of the dashboard and sends it to the viewers. Hooks of the peer may call Exchanged,
// failed and Quarantined from any goroutine.
type Board struct {
	peer     Peer
	about    About
	accuracy *Accuracy // nil if nobody evaluates
	ruling   ruling
	began    time.Time

	look chan struct{} // holds a token if there is something new
	stop chan struct{}
	done sync.WaitGroup

	mu     sync.Mutex
	hub    hub
	pulses pulses
	past   history
	news   news
	left   outlookOf
	last   view // the last one
	lost   losses
	final  *result.Result
	rested bool // the peer has left
}

// About has the facts that do not change during the run.
type About struct {
	Run      string `json:"run"`
	Self     string `json:"self"`
	Dataset  string `json:"dataset"`
	Model    string `json:"model"`
	Codec    string `json:"codec"`
	Strategy string `json:"strategy"`
	Controls bool   `json:"controls"`
	// Topology is the shape of the links.
	Topology topology.Shape `json:"-"`
	// MinPeers is how many peers the run waits for; Digests is the time between this peer's digests.
	MinPeers int           `json:"minPeers"`
	Digests  time.Duration `json:"-"`
	// Bounds are those of this peer's alarms.
	watch.Bounds `json:"-"`
}

// Show replaces sampled and estimated figures by those of a result.
func (b *Board) Show(r result.Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.final = &r
	b.lookNow()
}

// NewBoard makes the board of a peer of the run that about describes. accuracy is nil if nobody measures it, rule is
// nil if nobody may control the run from here.
func NewBoard(p Peer, about About, accuracy *Accuracy, rule Ruler, log *zap.Logger) *Board {
	about.Controls = rule != nil
	b := &Board{
		peer: p, about: about, accuracy: accuracy, began: time.Now(), look: make(chan struct{}, 1), stop: make(chan struct{}),
		pulses: pulses{self: transport.PeerID(about.Self), new: make(map[pair]pulse), met: make(map[pair]lastDigest)},
	}
	b.ruling = ruling{rule: rule, busy: make(chan struct{}, 1), taken: b.lookNow, log: log}
	return b
}

// start begins to look at the peer.
func (b *Board) start() {
	b.done.Go(b.run)
	if b.accuracy != nil {
		b.accuracy.running.Go(b.accuracy.run)
	}
}

// Rest ends the measurements when the peer has left, and waits until the model is not read any more; the board then
// shows the last state of the run. A nil board measures nothing.
func (b *Board) Rest() {
	if b == nil {
		return
	}
	b.accuracy.rest()
	b.see()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rested = true
}

// Accuracy is that on held-out data, as measured last; NaN before, and of a nil board.
func (b *Board) Accuracy() float64 {
	if b == nil || b.accuracy == nil {
		return math.NaN()
	}
	return float64(b.accuracy.last())
}

// see looks at the run as long as the peer takes part. When the work is done, members leave one after the other: they
// are shown in their last state.
func (b *Board) see() *view {
	b.mu.Lock()
	rested, last := b.rested, b.last
	last.Final = b.final
	b.mu.Unlock()
	if rested {
		return &last
	}
	now := newView(b.peer, b.about, b.accuracy)
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Over && now.Total < b.last.Total {
		now = now.with(b.last)
	} else {
		if !now.Over {
			b.lost.notice(b.last, *now)
		}
		now.Members = append(now.Members, b.lost...)
	}
	now.Alarms = b.news.alarms.See(now.members, transport.PeerID(b.about.Self), now.own)
	now.Final, now.Point = b.final, pointOf(now, time.Since(b.began))
	b.last = *now
	return now
}

// close ends the goroutines of start and the streams of all viewers.
func (b *Board) close() {
	b.mu.Lock()
	if !b.hub.closed {
		close(b.stop)
	}
	b.hub.close()
	b.mu.Unlock()
	b.Rest()
	b.done.Wait()
}

func (b *Board) run() {
	pulse, sample := time.NewTicker(pulseEvery), time.NewTicker(sampleEvery)
	defer pulse.Stop()
	defer sample.Stop()
	b.tick()
	for {
		select {
		case <-b.stop:
			return
		case <-pulse.C:
			b.mu.Lock()
			b.pulses.tell(&b.hub)
			b.mu.Unlock()
		case <-sample.C:
			b.tick()
		case <-b.look:
			b.tick()
		}
	}
}

// tick looks at the peer and informs the viewers.
func (b *Board) tick() {
	view := b.see()
	b.mu.Lock()
	defer b.mu.Unlock()
	if view.changes = b.news.notice(view); len(view.changes) > 0 {
		b.hub.tell("events", view.changes)
	}
	b.past.add(view.Point)
	view.Left = b.left.next(time.Since(b.began), view.Progress, view.Paused)
	b.pulses.receive(view)
	b.hub.tell("state", view)
}

// whole is the first message for a new viewer.
func (b *Board) whole(r *http.Request) everything {
	view, about := b.see(), b.about
	about.Controls = about.Controls && b.ruling.may(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	view.Left = b.left.last
	return everything{About: about, State: view, History: b.past.points(), Events: b.news.kept}
}

// everything is the first message of a stream, and the answer of /api/state.
type everything struct {
	About   About       `json:"about"`
	State   *view       `json:"state"`
	History []point     `json:"history"`
	Events  []happening `json:"events"`
}

// lookNow makes the board look at the peer immediately.
func (b *Board) lookNow() {
	select {
	case b.look <- struct{}{}:
	default: // a look is due anyway
	}
}

// Exchanged records an exchange of this peer.
func (b *Board) Exchanged(x peer.Exchanged) {
	if x.Err != nil {
		b.failed(x.Partner, x.Err)
		return
	}
	self := transport.PeerID(b.about.Self)
	p := pair{self, x.Partner}
	if x.Inbound {
		p = pair{x.Partner, self}
	}
	b.mu.Lock()
	b.pulses.add(p, 1, 0)
	b.mu.Unlock()
}

// failed records an exchange of this peer that broke off.
func (b *Board) failed(partner transport.PeerID, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hub.tell("events", []happening{b.news.add("failed", partner, "an exchange broke off; others are asked", err)})
}

// Quarantined records that this peer has quarantined a partner.
func (b *Board) Quarantined(partner transport.PeerID, period time.Duration, cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hub.tell("events", []happening{b.news.add("quarantined", partner, fmt.Sprintf("is kept away for %s", period.Round(time.Second)), cause)})
}

// stream sends events to one viewer until it leaves.
func (b *Board) stream(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	waiting := b.hub.join()
	b.mu.Unlock()
	if waiting == nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "Too many are watching this peer: ask another.", http.StatusServiceUnavailable)
		return
	}
	defer func() {
		b.mu.Lock()
		b.hub.leave(waiting)
		b.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	first, err := message("whole", b.whole(r))
	if err != nil {
		return
	}
	out := http.NewResponseController(w)
	send := func(text []byte) bool {
		if err := out.SetWriteDeadline(time.Now().Add(watchTimeout)); err != nil {
			return false
		}
		if _, err := w.Write(text); err != nil {
			return false
		}
		return out.Flush() == nil
	}
	if !send(append([]byte("retry: 2000\n"), first...)) {
		return
	}
	for {
		select {
		case text, ok := <-waiting:
			if !ok || !send(text) {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}
