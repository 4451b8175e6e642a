package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// tracked is an exchange under way at this peer, on either side.
type tracked struct {
	event averaging.Event // Peer, Exchange and Inbound; Kind and the rest vary
	began time.Time
	work  atomic.Int64 // nanoseconds spent on slices, by all goroutines together
	bytes atomic.Uint64

	mu     sync.Mutex
	lanes  []openLane
	broken error // why the exchange was broken off, if it was
}

// openLane is what it takes to end a lane: its stream, and where its writing
// goroutine waits.
type openLane struct {
	stream seam.Stream
	opened chan<- struct{}
}

// errAborted: the machine has given the exchange up, or the peer is closing.
var errAborted = errors.New("the exchange was given up at this side: its deadline, or its partner is lost")

// add takes a lane up. It reports false if the exchange is broken off.
func (x *tracked) add(t *talk) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.broken != nil {
		return false
	}
	x.lanes = append(x.lanes, openLane{t.stream, t.opened})
	return true
}

// breakOff ends every lane of the exchange. The first cause is the one reported; it
// tells whether this is it.
func (x *tracked) breakOff(cause error) (first bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.broken != nil {
		return false
	}
	x.broken = cause
	for _, lane := range x.lanes {
		lane.stream.Reset()
		wake(lane.opened)
	}
	return true
}

// wake leaves a token for whoever waits for one.
func wake(waiting chan<- struct{}) {
	select {
	case waiting <- struct{}{}:
	default: // a token waits already
	}
}

// cause is why the exchange was broken off, nil if it was not.
func (x *tracked) cause() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.broken
}

// worked adds the time since a moment to the work on slices.
func (x *tracked) worked(since time.Time) { x.work.Add(int64(time.Since(since))) }

// initiate carries out an outbound exchange, from the proposal on, and reports
// its course to the loop. Ending ctx breaks it off.
func (p *Peer) initiate(ctx context.Context, action averaging.Action) {
	x := &tracked{event: averaging.Event{Peer: action.Peer, Exchange: action.Exchange}, began: time.Now()}
	open, cancel := context.WithTimeout(ctx, p.config.Exchange.Stall)
	stream, err := p.transport.Open(open, seam.PeerID(action.Peer), seam.ProtocolExchange, p.config.Run)
	cancel()
	if err != nil {
		p.failed(x, fmt.Errorf("opening a stream: %w", err))
		return
	}
	t := p.talk(stream)
	defer p.end(t)
	x.add(t)
	stopWatch := context.AfterFunc(ctx, func() { x.breakOff(errAborted) })
	defer stopWatch()
	terms, err := p.propose(t, action)
	if err != nil {
		if r := (*refusal)(nil); errors.As(err, &r) {
			stream.Close()
		} else {
			stream.Reset()
		}
		p.declined(x, err)
		return
	}
	x.event.Kind = averaging.Accepted
	p.notify(notice{event: x.event})
	a := p.sides.initiator(p)
	a.Begin(terms)
	clean := p.transfer(ctx, x, a, t)
	done, distance := a.Done(), a.Distance()
	a.End(clean)
	p.sides.keepInitiator(a)
	if !done {
		p.failed(x, x.cause())
		return
	}
	p.completed(x, distance, t.stream)
}

// propose asks the partner, answers what it may ask in its turn, and reads whether
// it accepts.
func (p *Peer) propose(t *talk, action averaging.Action) (terms replica.Terms, err error) {
	incarnation, overlap := p.incarnation.Load(), uint8(min(max(action.Overlap, 1), maxOverlap))
	offer := wire.Propose{
		Run: p.config.Run, Layout: p.layout, View: p.counters.view.Load(), Incarnation: incarnation,
		Steps: p.counters.steps.Load(), SliceLen: uint32(p.replica.SliceLen()),
		Overlap: overlap, Lanes: uint8(p.lanesTo(seam.PeerID(action.Peer))), Codecs: []uint8{uint8(p.codec.ID)},
	}
	if err = t.say(uint64(action.Exchange), offer); err != nil {
		return terms, err
	}
	var accept wire.Accept
	if err = p.hearAnswer(t, seam.PeerID(action.Peer), &accept); err != nil {
		return terms, err
	}
	switch {
	case accept.Codec != uint8(p.codec.ID):
		return terms, fmt.Errorf("the partner accepts with codec %d, which was not offered: %w", accept.Codec, wire.ErrMessage)
	case accept.Overlap < offer.Overlap || accept.Lanes > offer.Lanes:
		return terms, fmt.Errorf("the partner accepts %d lanes and an overlap of %d where %d and %d were proposed: %w",
			accept.Lanes, accept.Overlap, offer.Lanes, offer.Overlap, wire.ErrMessage)
	}
	return replica.Terms{
		Partner: string(action.Peer), Incarnation: incarnation, Exchange: uint64(action.Exchange), Codec: p.codec,
		Window: min(int(accept.Window), p.config.Exchange.Window), Lanes: int(accept.Lanes), Overlap: int(accept.Overlap),
	}, nil
}

// maxOverlap bounds the number of exchanges at once that a message can tell.
const maxOverlap = 255

// hearAnswer reads the answer to a proposal. Before it, a partner may ask about
// exchanges that broke off.
func (p *Peer) hearAnswer(t *talk, partner seam.PeerID, accept *wire.Accept) error {
	for range maxQuestions + 1 {
		header, payload, err := t.await(accept.Type())
		switch {
		case err != nil:
			return err
		case header.Type == wire.TypeAccept:
			return accept.Decode(payload)
		case header.Type == wire.TypeRefuse:
			return refused(payload)
		case header.Type != wire.TypeStatus:
			return fmt.Errorf("waiting for %v: got %v: %w", accept.Type(), header.Type, wire.ErrType)
		}
		if err := p.answerStatus(t, partner, header, payload); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d questions in answer to a proposal: %w", maxQuestions, wire.ErrMessage)
}

// sides keeps the two sides of exchanges, with their buffers, for the next.
type sides struct {
	ledger     *replica.Ledger
	initiators chan *replica.Initiator
	responders chan *replica.Responder
}

// maxIdleSides bounds what is kept: one that is in use and one that is about to
// replace it.
const maxIdleSides = 2

func newSides(r *replica.Replica) sides {
	return sides{
		ledger:     replica.NewLedger(r, replica.LedgerOptions{}),
		initiators: make(chan *replica.Initiator, maxIdleSides),
		responders: make(chan *replica.Responder, maxIdleSides),
	}
}

func (s *sides) initiator(p *Peer) *replica.Initiator {
	select {
	case a := <-s.initiators:
		return a
	default:
		return replica.NewInitiator(p.replica, s.ledger)
	}
}

func (s *sides) responder(p *Peer) *replica.Responder {
	select {
	case r := <-s.responders:
		return r
	default:
		return replica.NewResponder(p.replica, s.ledger)
	}
}

func (s *sides) keepInitiator(a *replica.Initiator) {
	select {
	case s.initiators <- a:
	default:
	}
}

func (s *sides) keepResponder(r *replica.Responder) {
	select {
	case s.responders <- r:
	default:
	}
}
