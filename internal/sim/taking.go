package sim

import (
	"fmt"
	"io"
	"slices"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// taking is a transfer that another peer sends.
type taking struct {
	*talk
	name key
	coding
	receiver *replica.Receiver // nil until accepted
}

// offered makes of a stream that began with an OFFER a transfer.
func (t *talk) offered(h wire.Header, payload []byte) error {
	var offer wire.Offer
	if err := offer.Decode(payload); err != nil {
		return err
	}
	p := t.peer
	x := &taking{talk: t, name: key{p.world.peers[t.partner].id, averaging.ExchangeID(h.Exchange), true}, coding: p.world.transfers}
	if slices.Equal(offer.Codecs, p.world.exact.codecs) {
		x.coding = p.world.exact
	}
	x.terms.Exchange, x.terms.Transfer = h.Exchange, replica.TransferOf(&offer)
	t.part = x
	fault := x.terms.Check()
	switch {
	case offer.Layout != p.replica.Layout().Hash() || int(offer.SliceLen) != p.replica.SliceLen() || offer.Cut != p.replica.Cut():
		x.refuse(wire.ReasonLayout, "another layout or slice length")
	case !slices.Equal(offer.Codecs, x.codecs):
		x.refuse(wire.ReasonCodec, "another codec")
	case fault != nil:
		x.refuse(wire.ReasonProtocol, fault.Error())
	case p.running[x.name] != nil:
		x.refuse(wire.ReasonBusy, "the transfer is not over yet")
	default:
		p.running[x.name] = x
		p.tell(averaging.Event{
			Kind: averaging.Offered, Peer: x.name.partner, Exchange: x.name.id, Inbound: true, Transfer: x.terms.Transfer,
		})
	}
	return nil
}

// answer carries out what the machine says to the offer.
func (x *taking) answer(a averaging.Action) {
	p := x.peer
	if a.Kind == averaging.Refuse {
		delete(p.running, x.name)
		x.refuse(replica.ReasonOf(a.Reason), "")
		return
	}
	x.receiver = p.newReceiver()
	err := x.receiver.Begin(x.terms)
	if err == nil {
		x.bulk()
		err = x.say(uint64(x.name.id), wire.Accept{
			Codecs: x.codecs, Window: 1, Overlap: 1, Lanes: 1, Steps: uint64(p.counts.Steps), Incarnation: p.incarnation,
		})
	}
	if err == nil {
		err = x.taken()
	}
	if err != nil {
		x.breakOff(err)
	}
}

// refuse turns the partner down and ends the talk.
func (x *taking) refuse(reason wire.Reason, detail string) {
	x.peer.counts.Declined++
	if err := x.say(uint64(x.name.id), wire.Refuse{Reason: reason, Detail: detail}); err != nil {
		x.breakOff(err)
		return
	}
	x.finish()
}

func (x *taking) hear(h wire.Header, payload []byte) error {
	if x.receiver == nil || h.Type != wire.TypePart {
		return fmt.Errorf("transfer %d of peer %d: %v out of turn: %w", x.name.id, x.partner, h.Type, wire.ErrType)
	}
	if err := x.receiver.Part(h, payload); err != nil {
		return err
	}
	return x.taken()
}

// taken ends the transfer if all of it has come.
func (x *taking) taken() error {
	if !x.receiver.Done() {
		return nil
	}
	frame := wire.Reserve(x.frame)
	if err := wire.Seal(frame, wire.Header{Type: wire.TypeTaken, Exchange: uint64(x.name.id)}); err != nil {
		return err
	}
	x.frame = frame
	if err := x.write(frame); err != nil {
		return err
	}
	values := x.receiver.Values()
	x.finish()
	x.release()
	x.peer.completed(x.talk, x.name, 0, values)
	return nil
}

func (x *taking) closed() error { return io.ErrUnexpectedEOF }

func (x *taking) abort() { x.breakOff(ErrAborted) }

// broken tells the partner if the fault is its own.
func (x *taking) broken(err error) {
	if reason, theirs := replica.Blame(err); theirs {
		// A stream that takes no more words is about to be reset anyway.
		_ = x.say(uint64(x.name.id), wire.Refuse{Reason: reason, Detail: err.Error()})
	}
	if x.receiver == nil {
		x.peer.broke(x.partner, err)
		return
	}
	x.release()
	x.peer.failed(x.partner, x.name, err)
}

// release lets go of what the transfer used.
func (x *taking) release() {
	delete(x.peer.running, x.name)
	x.peer.idleReceivers = append(x.peer.idleReceivers, x.receiver)
}

// newReceiver returns one that is not in use.
func (p *peer) newReceiver() *replica.Receiver {
	if n := len(p.idleReceivers); n > 0 {
		r := p.idleReceivers[n-1]
		p.idleReceivers = p.idleReceivers[:n-1]
		return r
	}
	return replica.NewReceiver(p.replica)
}
