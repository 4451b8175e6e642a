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
	"github.com/seed-97356399/murmuration/quant"
)

// tracked is an exchange under way at this peer, on either side.
type tracked struct {
	event   averaging.Event // Peer, Exchange and Inbound; Kind and the rest vary
	began   time.Time
	agreed  time.Duration // from the beginning to the answer, of an exchange initiated here
	round   time.Duration // of this, from the proposal on
	opened  time.Duration // from the answer to the partner's first sign, of one served here
	work    atomic.Int64  // nanoseconds spent on slices, by all goroutines together
	bytes   atomic.Uint64
	coded   atomic.Uint64 // of these, those that the initiator sent
	longest atomic.Int64  // nanoseconds waited for a frame, at most
	steps   uint64        // of this peer when slices began to move
	codec   quant.ID      // the coarsest in use; 0 until slices move
	stopped atomic.Bool   // the machine has broken it off

	mu      sync.Mutex
	lanes   []openLane
	first   [1]openLane        // room for the lane that every exchange has
	opening context.CancelFunc // ends the opening of streams, if any have been opened
	broken  error              // why the exchange was broken off, if it was
}

// newTracked is an exchange that begins. It is never used again: who breaks one off
// late must not hit the next.
func newTracked(event averaging.Event) *tracked {
	x := &tracked{event: event, began: time.Now()}
	x.lanes = x.first[:0]
	return x
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

// opens has the end of the exchange end the opening of a stream too.
func (x *tracked) opens(cancel context.CancelFunc) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.opening = cancel
	if x.broken != nil {
		cancel()
	}
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
	if x.opening != nil {
		x.opening()
	}
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

// calm takes a token away that is left over from an exchange before. Whether that of
// the talk is broken off is to be looked at afterwards.
func (t *talk) calm() {
	for len(t.opened) > 0 {
		<-t.opened
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
// its course to the loop.
func (p *Peer) initiate(x *tracked, overlap int) {
	if !p.underway.enter(x) {
		p.failed(x, errAborted)
		return
	}
	defer p.underway.leave(x)
	t, err := p.begin(x)
	if err != nil {
		p.failed(x, err)
		return
	}
	defer p.end(t)
	terms, err := p.propose(x, t, overlap)
	if err != nil {
		hangUp(t.stream, err)
		p.declined(x, err)
		return
	}
	x.event.Kind = averaging.Accepted
	p.notify(notice{event: x.event})
	p.limit(x, t)
	p.begins(x, t, terms.Codecs)
	a := p.sides.initiator(p)
	a.Begin(terms)
	clean := p.transfer(x, a, t)
	done, distance := a.Done(), a.Distance()
	p.measure(x, a.Again(), done)
	a.End(clean)
	p.watchPull(terms.Partner)
	p.sides.keepInitiator(a)
	if !done {
		p.failed(x, x.cause())
		return
	}
	p.completed(x, distance, t.stream)
}

// begin opens a stream to the partner and talks on it, unless the exchange has been broken
// off meanwhile.
func (p *Peer) begin(x *tracked) (*talk, error) {
	stream, err := p.open(x)
	if err != nil {
		return nil, fmt.Errorf("opening a stream: %w", err)
	}
	t := p.talk(stream)
	t.stall = p.patience(stream.Remote())
	if !x.add(t) {
		stream.Reset()
		p.end(t)
		return nil, x.cause()
	}
	return t, nil
}

// hangUp ends a stream on which the partner has not agreed: in good order if it has
// refused, at once if something is wrong.
func hangUp(stream seam.Stream, err error) {
	if r := (*refusal)(nil); errors.As(err, &r) {
		stream.Close()
	} else {
		stream.Reset()
	}
}

// open opens the first stream of an exchange.
func (p *Peer) open(x *tracked) (seam.Stream, error) {
	ctx, cancel := context.WithTimeout(p.exchanges, p.patience(seam.PeerID(x.event.Peer)))
	defer cancel()
	x.opens(cancel)
	return p.transport.Open(ctx, seam.PeerID(x.event.Peer), seam.ProtocolExchange, p.config.Run)
}

// propose asks the partner, answers what it may ask in its turn, and reads whether
// it accepts.
func (p *Peer) propose(x *tracked, t *talk, overlaps int) (terms replica.Terms, err error) {
	incarnation, overlap := p.incarnation.Load(), uint8(min(max(overlaps, 1), maxOverlap))
	made := p.plans.to(seam.PeerID(x.event.Peer), p.trainer.stepTime(), p.log)
	offer := wire.Propose{
		Run: p.config.Run, Layout: p.layout, View: p.counters.view.Load(), Incarnation: incarnation,
		Steps: p.counters.steps.Load(), SliceLen: uint32(p.replica.SliceLen()), Cut: p.cut,
		Overlap: overlap, Lanes: uint8(p.lanesTo(seam.PeerID(x.event.Peer))), Codecs: made.codecs,
	}
	if err = say(t, uint64(x.event.Exchange), offer); err != nil {
		return terms, err
	}
	asked := time.Now()
	accept := wire.Accept{Codecs: t.numbers}
	err = p.hearAnswer(x, t, &accept)
	if t.numbers = accept.Codecs; err != nil {
		return terms, err
	}
	x.agreed, x.round = time.Since(x.began), time.Since(asked)
	p.counters.tallies.rounds.add(x.round)
	agreed, offered := made.within(accept.Codecs)
	switch {
	case !offered:
		return terms, fmt.Errorf("the partner accepts codecs %v where %v were offered: %w", accept.Codecs, made.codecs, wire.ErrMessage)
	case accept.Overlap < offer.Overlap || accept.Lanes > offer.Lanes:
		return terms, fmt.Errorf("the partner accepts %d lanes and an overlap of %d where %d and %d were proposed: %w",
			accept.Lanes, accept.Overlap, offer.Lanes, offer.Overlap, wire.ErrMessage)
	}
	return replica.Terms{
		Partner: string(x.event.Peer), Incarnation: incarnation, Exchange: uint64(x.event.Exchange), Plan: agreed.plan, Codecs: agreed.ids,
		Window: min(int(accept.Window), p.window(agreed.plan)), Lanes: int(accept.Lanes), Overlap: int(accept.Overlap),
	}, nil
}

// maxOverlap bounds the number of exchanges at once that a message can tell.
const maxOverlap = 255

// hearAnswer reads the answer to a proposal. Before it, a partner may ask about
// exchanges that broke off, or say what it is.
func (p *Peer) hearAnswer(x *tracked, t *talk, accept *wire.Accept) error {
	partner, told := seam.PeerID(x.event.Peer), false
	for range maxQuestions + 2 {
		header, payload, err := t.await(accept.Type())
		switch {
		case err != nil:
			return err
		case header.Type == wire.TypeAccept:
			return accept.Decode(payload)
		case header.Type == wire.TypeRefuse:
			return refused(payload)
		case header.Type == wire.TypeRecord && !told:
			told = true
			if err := p.hearRecord(partner, payload); err != nil {
				return err
			}
			continue
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
	sessions   chan *session
}

// maxIdleSides bounds what is kept: one that is in use and one that is about to
// replace it.
const maxIdleSides = 2

func newSides(r *replica.Replica) sides {
	return sides{
		ledger:     replica.NewLedger(r, replica.LedgerOptions{}),
		initiators: make(chan *replica.Initiator, maxIdleSides),
		sessions:   make(chan *session, maxIdleSides),
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

func (s *sides) session(p *Peer) *session {
	select {
	case served := <-s.sessions:
		return served
	default:
		return newSession(replica.NewResponder(p.replica, s.ledger))
	}
}

func (s *sides) keepInitiator(a *replica.Initiator) {
	select {
	case s.initiators <- a:
	default:
	}
}

func (s *sides) keepSession(served *session) {
	select {
	case s.sessions <- served:
	default:
	}
}
