package sim

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// giving is a transfer that the peer sends.
type giving struct {
	*talk
	name key
	coding
	sender   *replica.Sender
	accepted bool
	sending  bool  // something waits for the line to be free
	sent     int64 // bytes of PARTs
}

// coding is how transfers are coded.
type coding struct {
	terms  replica.TransferTerms // but for what is moved, until it is known
	codecs []uint8
}

func newCoding(terms replica.TransferTerms) coding {
	c := coding{terms: terms}
	for _, id := range terms.Codecs {
		c.codecs = append(c.codecs, uint8(id))
	}
	return c
}

// give opens a transfer, and sends what may be sent before it is accepted.
func (p *peer) give(a averaging.Action) {
	partner := p.world.index[a.Peer]
	name := key{a.Peer, a.Exchange, false}
	t, ok := p.open(partner)
	if !ok {
		p.world.queue.After(p.world.line(p.index, partner).link.Delay, func() {
			p.failed(partner, name, ErrUnreachable)
		})
		return
	}
	x := &giving{talk: t, name: name, coding: p.world.transfers, sender: p.newSender()}
	if a.Exact {
		x.coding = p.world.exact
	}
	x.terms.Exchange, x.terms.Transfer = uint64(a.Exchange), a.Transfer
	offer := wire.Offer{
		Run: run, Layout: p.replica.Layout().Hash(), Incarnation: p.incarnation, Steps: uint64(p.counts.Steps),
		SliceLen: uint32(p.replica.SliceLen()), Cut: p.replica.Cut(), Codecs: x.codecs,
	}
	replica.PutTransfer(&offer, a.Transfer)
	t.part, p.running[name] = x, x
	err := own(x.sender.Begin(x.terms))
	if err == nil {
		err = t.say(uint64(a.Exchange), offer)
	}
	if err == nil {
		t.enlarge()
		err = x.send()
	}
	if err != nil { // not before the machine has seen what it asked for
		p.world.queue.After(0, func() { x.breakOff(err) })
	}
}

// errOwn: what is to be sent cannot be, to nobody.
var errOwn = errors.New("this side's own fault")

func own(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errOwn, err)
}

// send hands PARTs to the line as it becomes free, so that what is not yet sent can
// still be broken off.
func (x *giving) send() error {
	w := x.peer.world
	for !x.over && !x.sending && (x.accepted || x.sent < wire.MaxEager) {
		frame, ok, err := x.sender.Next(x.frame)
		x.frame = frame
		if err != nil {
			return own(err)
		}
		if !ok {
			x.end.CloseWrite()
			return nil
		}
		if err := x.write(frame); err != nil {
			return err
		}
		x.sent += int64(len(frame))
		x.heard = w.queue.Now() // a partner owes nothing while it is being sent something
		if left := x.end.stream.line.left(x.end.way); left > w.queue.Now() {
			x.sending = true
			w.queue.After(left-w.queue.Now(), x.resume)
		}
	}
	return nil
}

// resume goes on when the line is free.
func (x *giving) resume() {
	x.sending = false
	if x.over || x.peer.gone {
		return
	}
	if err := x.send(); err != nil {
		x.breakOff(err)
	}
}

func (x *giving) abort() { x.breakOff(ErrAborted) }

func (x *giving) hear(h wire.Header, payload []byte) error {
	switch {
	case h.Type == wire.TypeRefuse:
		return x.refused(payload)
	case !x.accepted && h.Type == wire.TypeAccept:
		return x.begin(payload)
	case x.accepted && x.sender.Done() && h.Type == wire.TypeTaken && h.Exchange == x.terms.Exchange:
		x.complete()
		return nil
	}
	return fmt.Errorf("transfer %d to peer %d: %v out of turn: %w", x.name.id, x.partner, h.Type, wire.ErrType)
}

// begin goes on with a transfer that is accepted.
func (x *giving) begin(payload []byte) error {
	var accept wire.Accept
	if err := accept.Decode(payload); err != nil {
		return err
	}
	if !slices.Equal(accept.Codecs, x.codecs) || accept.Lanes != 1 {
		return fmt.Errorf("accepted on terms that were not offered: %w", wire.ErrMessage)
	}
	x.accepted = true
	x.peer.tell(averaging.Event{Kind: averaging.Accepted, Peer: x.name.partner, Exchange: x.name.id})
	return x.send()
}

// refused ends an offer that the partner turned down, or breaks a transfer off that it
// ended.
func (x *giving) refused(payload []byte) error {
	var r wire.Refuse
	if err := r.Decode(payload); err != nil {
		return err
	}
	err := fmt.Errorf("%w: %v: %s", ErrRefused, r.Reason, r.Detail)
	if x.accepted {
		return err
	}
	p := x.peer
	x.finish()
	x.release()
	p.counts.Refused++
	event := averaging.Event{Kind: averaging.Refused, Peer: x.name.partner, Exchange: x.name.id, Reason: replica.RefusedFor(r.Reason)}
	if event.Reason != averaging.Busy && event.Reason != averaging.Round {
		p.broke(x.partner, err)
	}
	p.tell(event)
	return nil
}

// complete ends a transfer that the partner has taken in.
func (x *giving) complete() {
	values := x.sender.Values()
	x.finish()
	x.release()
	x.peer.completed(x.talk, x.name, 0, values)
}

func (x *giving) closed() error { return io.ErrUnexpectedEOF }

func (x *giving) broken(err error) {
	x.release()
	x.peer.failed(x.partner, x.name, err)
}

// release lets go of what the transfer used.
func (x *giving) release() {
	delete(x.peer.running, x.name)
	x.peer.idleSenders = append(x.peer.idleSenders, x.sender)
}

// newSender returns one that is not in use.
func (p *peer) newSender() *replica.Sender {
	if n := len(p.idleSenders); n > 0 {
		s := p.idleSenders[n-1]
		p.idleSenders = p.idleSenders[:n-1]
		return s
	}
	return replica.NewSender(p.replica)
}

// errHalted: the machine's algorithm cannot go on.
var errHalted = errors.New("the algorithm cannot go on")
