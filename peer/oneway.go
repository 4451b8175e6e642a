package peer

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/quant"
)

// oneWay keeps the sides of transfers, with their buffers, for the next.
type oneWay struct {
	senders   chan *replica.Sender
	receivers chan *replica.Receiver
}

// maxIdleOneWay bounds what is kept of either side: parts travel at once.
const maxIdleOneWay = 4

func newOneWay() oneWay {
	return oneWay{make(chan *replica.Sender, maxIdleOneWay), make(chan *replica.Receiver, maxIdleOneWay)}
}

func (o *oneWay) sender(r *replica.Replica) *replica.Sender {
	select {
	case s := <-o.senders:
		return s
	default:
		return replica.NewSender(r)
	}
}

func (o *oneWay) receiver(r *replica.Replica) *replica.Receiver {
	select {
	case s := <-o.receivers:
		return s
	default:
		return replica.NewReceiver(r)
	}
}

func (o *oneWay) keepSender(s *replica.Sender) {
	select {
	case o.senders <- s:
	default:
	}
}

func (o *oneWay) keepReceiver(r *replica.Receiver) {
	select {
	case o.receivers <- r:
	default:
	}
}

// send starts a transfer, unless the peer is closing or has no model yet.
func (l *loop) send(action averaging.Action, key exchangeKey) {
	x := newTracked(averaging.Event{Peer: action.Peer, Exchange: action.Exchange, Transfer: action.Transfer})
	if l.peer.arrival.open() && !l.peer.isClosing() && l.peer.transfers.spawn(func() { l.peer.send(x, action.Exact) }) {
		l.running[key] = x
		return
	}
	x.event.Kind, x.event.Reason = averaging.Refused, averaging.Closing
	l.events = append(l.events, notice{event: x.event})
}

// send carries out a transfer to a partner, without rounding if it is to be exact, and
// reports its course to the loop.
func (p *Peer) send(x *tracked, exact bool) {
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
	s := p.oneWay.sender(p.replica)
	defer p.oneWay.keepSender(s)
	err = p.handOver(x, t, s, p.oneWayOffer(t.stream.Remote(), exact))
	x.bytes.Add(t.sent + t.received)
	x.waited(t)
	if err == nil {
		p.moved(x, t.stream)
		return
	}
	if cause := x.cause(); cause != nil {
		err = cause
	}
	hangUp(t.stream, err)
	p.declined(x, err)
}

// handOver offers a part of a buffer and sends it, until the partner has taken all of it.
// It does not wait for the partner's word with what is small.
func (p *Peer) handOver(x *tracked, t *talk, s *replica.Sender, made offer) error {
	terms := replica.TransferTerms{Exchange: uint64(x.event.Exchange), Transfer: x.event.Transfer, Plan: made.plan, Stopped: &x.stopped}
	if err := s.Begin(terms); err != nil {
		return &ownFault{err}
	}
	eager := len(made.codecs) == 1 // else the partner has a choice
	ended, agreed, err := p.agree(x, t, s, made, eager)
	if err != nil {
		return err
	}
	x.event.Kind = averaging.Accepted
	p.notify(notice{event: x.event})
	p.limit(x, t)
	p.begins(x, t, agreed.ids)
	if !eager {
		terms.Plan = agreed.plan
		if err := s.Begin(terms); err != nil {
			return &ownFault{err}
		}
	}
	if !ended {
		if _, err := x.pour(s, t, everything); err != nil {
			return err
		}
	}
	return t.hearTaken()
}

// agree offers a transfer and hears by which of the codecs the partner takes it. What may
// be sent before is sent; it reports whether that was all.
func (p *Peer) agree(x *tracked, t *talk, s *replica.Sender, made offer, eager bool) (ended bool, agreed offer, err error) {
	offered := wire.Offer{
		Run: p.config.Run, Layout: p.layout, View: p.counters.view.Load(), Incarnation: p.incarnation.Load(),
		Steps: p.counters.steps.Load(), SliceLen: uint32(p.replica.SliceLen()), Cut: p.cut, Codecs: made.codecs,
	}
	replica.PutTransfer(&offered, x.event.Transfer)
	if err = say(t, uint64(x.event.Exchange), offered); err != nil {
		return false, agreed, err
	}
	asked := time.Now()
	if eager {
		if ended, err = x.pour(s, t, wire.MaxEager); err != nil {
			return ended, agreed, err
		}
	}
	accept := wire.Accept{Codecs: t.numbers}
	_, err = t.hear(&accept)
	if t.numbers = accept.Codecs; err != nil {
		return ended, agreed, err
	}
	x.agreed, x.round = time.Since(x.began), time.Since(asked)
	p.counters.tallies.rounds.add(x.round)
	agreed, known := made.within(accept.Codecs)
	if !known {
		err = fmt.Errorf("the partner accepts codecs %v where %v were offered: %w", accept.Codecs, made.codecs, wire.ErrMessage)
	}
	return ended, agreed, err
}

// hearTaken waits until the receiver says that it has taken all in.
func (t *talk) hearTaken() error {
	header, payload, err := t.await(wire.TypeTaken)
	switch {
	case err != nil:
		return err
	case header.Type == wire.TypeRefuse:
		return refused(payload)
	case header.Type != wire.TypeTaken:
		return fmt.Errorf("waiting for %v: got %v: %w", wire.TypeTaken, header.Type, wire.ErrType)
	}
	return nil
}

// oneWayOffer is what transfers to a partner are coded with: what the run is, or nothing
// that rounds, as is asked for or where models are averaged.
func (p *Peer) oneWayOffer(partner seam.PeerID, exact bool) offer {
	if exact || p.together == nil {
		return newOffer(replica.ExactTerms().Plan)
	}
	return p.plans.to(partner, 0, p.log)
}

// everything is no bound on what is poured at once.
const everything = 1 << 62

// pour sends what a sender has, until about so many bytes of the talk have been sent;
// after the last it closes its side of the stream, and reports so.
func (x *tracked) pour(s *replica.Sender, t *talk, bytes uint64) (ended bool, err error) {
	for t.sent < bytes {
		began := time.Now()
		frame, more, err := s.Next(t.frame)
		t.frame = frame
		x.worked(began)
		if errors.Is(err, replica.ErrStopped) {
			return false, err
		}
		if err != nil {
			return false, &ownFault{err}
		}
		if !more {
			if err = t.stream.CloseWrite(); err != nil {
				return false, fmt.Errorf("ending a transfer: %w", err)
			}
			return true, nil
		}
		if err = t.write(frame); err != nil {
			return false, fmt.Errorf("sending a part: %w", err)
		}
	}
	return false, nil
}

// ownFault is an error of this side's own, for which the partner is not to be blamed: it
// is none of those that it holds.
type ownFault struct{ err error }

func (e *ownFault) Error() string { return fmt.Sprintf("what is to be sent: %v", e.err) }

// unsendable tells the machine, and the next step of the trainer, of an own fault.
func (p *Peer) unsendable(x *tracked, err error) {
	own := (*ownFault)(nil)
	if !errors.As(err, &own) {
		return
	}
	x.event.Reason = averaging.Unfit
	if p.together != nil && x.event.Transfer.From != averaging.Parameters {
		p.together.fault(leftOut(own.err))
	}
}

// leftOut tells the trainer of a gradient that is of use to nobody.
func leftOut(err error) error {
	return fmt.Errorf("the gradient: %w: it was left out; lower the learning rate, or look at the data", err)
}

// checkOneWay tells what is wrong with the codecs where gradients are sent: whatever
// needs a model near the sender's at the receiver.
func (p *Peer) checkOneWay() error {
	if p.together == nil {
		return nil
	}
	for _, made := range p.plans.ready {
		for _, id := range made.ids {
			if codec, _ := quant.ByID(id); codec.Lattice != (quant.Lattice{}) {
				return fmt.Errorf("Exchange.Codec: %s needs models that are near each other, and the algorithm sends gradients: want raw, bf16, fp16 or int8", codec.Name)
			}
		}
	}
	return nil
}
