package dashboard

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/seam"
)

const (
	// pulseEvery is the time between two messages on exchanges, sampleEvery that
	// between two looks at the peer.
	pulseEvery  = 250 * time.Millisecond
	sampleEvery = time.Second
	// maxPulses bounds the pairs of peers that one message tells of.
	maxPulses = 256
	// maxHappenings bounds the events that are kept for who comes later.
	maxHappenings = 40
	// maxDetail bounds what is told of an error, in characters.
	maxDetail = 300
)

// Peer is a peer as its dashboard sees it.
type Peer interface {
	Stats() peer.Stats
	Members() []peer.Member
	Digests() []peer.Digest
	Control() peer.ControlStats
}

// Board gathers what the dashboard shows and tells it to those who watch. Hooks of
// the peer may call exchanged, failed and quarantined from any goroutine.
type Board struct {
	peer     Peer
	about    About
	accuracy *Accuracy     // nil where nobody evaluates
	rule     Ruler         // nil where the operator's key is not known
	ruling   chan struct{} // holds a token while an order is carried out
	log      *zap.Logger
	began    time.Time

	look         chan struct{} // holds a token if something is new
	stop, enough chan struct{} // enough ends measuring
	resting      sync.Once
	gone         sync.WaitGroup
	measuring    sync.WaitGroup

	mu      sync.Mutex
	hub     hub
	pulses  map[pair]pulse
	met     map[pair]heard // exchanges of others, as last told
	past    history
	happens []happening
	known   map[seam.PeerID]peer.PeerState
	paused  bool
	left    outlookOf
}

// About is what does not change while the run goes on.
type About struct {
	Run      string `json:"run"`
	Self     string `json:"self"`
	Dataset  string `json:"dataset"`
	Model    string `json:"model"`
	Codec    string `json:"codec"`
	Strategy string `json:"strategy"`
	Controls bool   `json:"controls"`
}

// NewBoard makes the board of a peer, which is about a run. Accuracy is nil where nobody
// measures it, and rule where nobody may control the run from here.
func NewBoard(p Peer, about About, accuracy *Accuracy, rule Ruler, log *zap.Logger) *Board {
	about.Controls = rule != nil
	return &Board{
		peer: p, about: about, accuracy: accuracy, rule: rule, ruling: make(chan struct{}, 1), log: log, began: time.Now(),
		look: make(chan struct{}, 1), stop: make(chan struct{}), enough: make(chan struct{}), pulses: make(map[pair]pulse), met: make(map[pair]heard),
	}
}

// start looks at the peer from now on.
func (b *Board) start() {
	b.gone.Go(b.run)
	if b.accuracy != nil {
		b.measuring.Go(func() { b.accuracy.run(b.enough) })
	}
}

// Rest ends measuring, and waits until nothing of the model is read any more. A nil
// board measures nothing.
func (b *Board) Rest() {
	if b == nil {
		return
	}
	b.resting.Do(func() { close(b.enough) })
	b.measuring.Wait()
}

// close ends what start began, and the streams of those who watch.
func (b *Board) close() {
	b.mu.Lock()
	select {
	case <-b.stop:
	default:
		close(b.stop)
	}
	b.hub.close()
	b.mu.Unlock()
	b.Rest()
	b.gone.Wait()
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
			b.tellPulses()
			b.mu.Unlock()
		case <-sample.C:
			b.tick()
		case <-b.look:
			b.tick()
		}
	}
}

// tick looks at the peer and tells those who watch.
func (b *Board) tick() {
	view := b.view()
	b.mu.Lock()
	defer b.mu.Unlock()
	if view.changes = b.notice(view); len(view.changes) > 0 {
		b.hub.tell("events", view.changes)
	}
	b.past.add(view.point(time.Since(b.began)))
	view.Left = b.left.next(time.Since(b.began), view.Progress, view.Paused)
	b.hear(view)
	b.hub.tell("state", view)
}

// whole is all that somebody who comes is told first.
func (b *Board) whole() everything {
	view := b.view()
	b.mu.Lock()
	defer b.mu.Unlock()
	view.Left = b.left.last
	return everything{About: b.about, State: view, History: b.past.points(), Events: b.happens}
}

// everything is the first message of a stream, and the answer of /api/state.
type everything struct {
	About   About       `json:"about"`
	State   *view       `json:"state"`
	History []point     `json:"history"`
	Events  []happening `json:"events"`
}

// happening is something that people like to know.
type happening struct {
	At   int64  `json:"at"` // in milliseconds since 1970
	Kind string `json:"kind"`
	Peer string `json:"peer,omitempty"`
	Text string `json:"text"`
	// Detail is for who wants to know more.
	Detail string `json:"detail,omitempty"`
}

// happened notes an event. The lock is held.
func (b *Board) happened(kind string, id seam.PeerID, text string, detail ...error) happening {
	h := happening{At: time.Now().UnixMilli(), Kind: kind, Peer: string(id), Text: text}
	for _, err := range detail {
		h.Detail = cli.Cut(cli.Printable(err.Error()), maxDetail)
	}
	b.happens = append(b.happens[max(0, len(b.happens)+1-maxHappenings):], h)
	return h
}

// notice finds what is otherwise than at the last look. The lock is held.
func (b *Board) notice(v *view) (changes []happening) {
	known := make(map[seam.PeerID]peer.PeerState, len(v.members))
	for _, m := range v.members {
		known[m.ID] = m.State
		was, here := b.known[m.ID]
		switch {
		case b.known == nil:
		case !here:
			changes = append(changes, b.happened("joined", m.ID, "joined"))
		case was != m.State && (m.State == peer.StateOver || m.State == peer.StateCopying):
			changes = append(changes, b.happened(m.State.String(), m.ID, stateTold(m.State)))
		}
	}
	if v.Paused != b.paused {
		b.paused = v.Paused
		kind, text := "paused", "the operator holds all peers"
		if !v.Paused {
			kind, text = "resumed", "the operator lets all peers go on"
		}
		changes = append(changes, b.happened(kind, "", text))
	}
	for id := range b.known {
		if _, here := known[id]; !here {
			changes = append(changes, b.happened("gone", id, "is gone"))
		}
	}
	b.known = known
	return changes
}

func stateTold(s peer.PeerState) string {
	if s == peer.StateCopying {
		return "copies the model"
	}
	return "has seen the work done"
}
