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

// Errors of talks, to be tested with errors.Is.
var (
	// ErrUnreachable: the link to the partner is cut.
	ErrUnreachable = errors.New("the partner cannot be reached")
	// ErrAborted: the peer's own machine broke the exchange off.
	ErrAborted = errors.New("broken off by this side")
	// ErrRefused: the partner refuses; the message tells the reason.
	ErrRefused = errors.New("refused")
)

// outbound is an exchange that the peer initiates.
type outbound struct {
	*talk
	name      key
	proposed  wire.Propose
	initiator *replica.Initiator // nil until the partner has accepted
	done      bool               // all is applied here; the partner has yet to confirm
}

// propose opens an exchange.
func (p *peer) propose(a averaging.Action) {
	partner := p.world.index[a.Peer]
	t, ok := p.open(partner)
	if !ok {
		p.world.queue.After(p.world.line(p.index, partner).link.Delay, func() {
			p.failed(partner, key{a.Peer, a.Exchange, false}, ErrUnreachable)
		})
		return
	}
	p.ledger.Expire(p.now())
	x := &outbound{talk: t, name: key{a.Peer, a.Exchange, false}}
	x.proposed = wire.Propose{
		Run: run, Layout: p.replica.Layout().Hash(), Incarnation: p.incarnation, Steps: uint64(p.counts.Steps),
		SliceLen: uint32(p.replica.SliceLen()), Cut: p.replica.Cut(), Overlap: uint8(max(a.Overlap, 1)), Lanes: 1,
		Codecs: p.world.codecs,
	}
	t.part, p.running[x.name] = x, x
	if err := t.say(uint64(a.Exchange), x.proposed); err != nil {
		t.breakOff(err)
	}
}

// run is the name of every world's run.
const run = "simulation"

func (x *outbound) abort() { x.breakOff(ErrAborted) }

func (x *outbound) hear(h wire.Header, payload []byte) error {
	switch {
	case h.Type == wire.TypeRefuse:
		return x.refused(payload)
	case x.initiator == nil && h.Type == wire.TypeStatus:
		return x.peer.reply(x.talk, h, payload)
	case x.initiator == nil && h.Type == wire.TypeAccept:
		return x.accepted(payload)
	case x.initiator != nil && !x.initiator.Ranged() && h.Type == wire.TypeRanges:
		if err := x.initiator.Ranges(h, payload); err != nil || !x.initiator.Ranged() {
			return err
		}
		return x.send()
	case x.initiator != nil && !x.done && h.Type == wire.TypeDiff:
		return x.apply(h, payload)
	}
	return fmt.Errorf("exchange %d with peer %d: %v out of turn: %w", x.name.id, x.partner, h.Type, wire.ErrType)
}

// accepted begins the exchange.
func (x *outbound) accepted(payload []byte) error {
	var accept wire.Accept
	if err := accept.Decode(payload); err != nil {
		return err
	}
	if !slices.Equal(accept.Codecs, x.proposed.Codecs) || accept.Overlap < x.proposed.Overlap || accept.Lanes != 1 {
		return fmt.Errorf("accepted on terms that were not proposed: %w", wire.ErrMessage)
	}
	p := x.peer
	x.initiator = p.newInitiator()
	terms := p.world.config.Terms
	terms.Partner, terms.Incarnation, terms.Exchange = string(x.name.partner), p.incarnation, uint64(x.name.id)
	terms.Window, terms.Lanes, terms.Overlap = min(int(accept.Window), max(terms.Window, 1)), 1, int(accept.Overlap)
	x.initiator.Begin(terms)
	x.bulk()
	p.tell(averaging.Event{Kind: averaging.Accepted, Peer: x.name.partner, Exchange: x.name.id})
	if !x.initiator.Ranged() {
		return nil
	}
	return x.send()
}

// send sends slices as the window allows.
func (x *outbound) send() error {
	for {
		frame, ok, err := x.initiator.Lane(0).Code(x.frame)
		x.frame = frame
		if err != nil || !ok {
			return err
		}
		if err := x.write(frame); err != nil {
			return err
		}
	}
}

// apply applies a difference, and acknowledges when it was the last.
func (x *outbound) apply(h wire.Header, payload []byte) error {
	lane := x.initiator.Lane(0)
	if err := lane.Diff(h, payload); err != nil {
		return err
	}
	if !x.initiator.Done() {
		return x.send()
	}
	x.done = true
	frame, err := lane.Ack(x.frame)
	if err != nil {
		return err
	}
	x.frame = frame
	if err := x.write(frame); err != nil {
		return err
	}
	x.end.CloseWrite()
	return nil
}

// refused ends a proposal that the partner turned down, or breaks an exchange off
// that it ended.
func (x *outbound) refused(payload []byte) error {
	var r wire.Refuse
	if err := r.Decode(payload); err != nil {
		return err
	}
	err := fmt.Errorf("%w: %v: %s", ErrRefused, r.Reason, r.Detail)
	if x.initiator != nil {
		return err
	}
	p := x.peer
	x.finish()
	delete(p.running, x.name)
	p.counts.Refused++
	event := averaging.Event{Kind: averaging.Refused, Peer: x.name.partner, Exchange: x.name.id, Reason: replica.RefusedFor(r.Reason)}
	if event.Reason != averaging.Busy {
		p.broke(x.partner, err)
	}
	p.tell(event)
	return nil
}

// closed is how the partner confirms that it has applied everything too.
func (x *outbound) closed() error {
	if !x.done {
		return io.ErrUnexpectedEOF
	}
	x.complete(true)
	return nil
}

func (x *outbound) broken(err error) {
	if x.done {
		x.complete(false)
		return
	}
	if x.initiator != nil {
		x.initiator.End(false)
		x.peer.idleInitiators = append(x.peer.idleInitiators, x.initiator)
	}
	x.peer.failed(x.partner, x.name, err)
}

// complete ends an exchange of which every slice is applied here.
func (x *outbound) complete(clean bool) {
	x.peer.counts.Again += x.initiator.Again()
	distance := x.initiator.Distance()
	x.initiator.End(clean)
	x.peer.idleInitiators = append(x.peer.idleInitiators, x.initiator)
	delete(x.peer.running, x.name)
	x.peer.completed(x.talk, x.name, distance, 2*x.peer.values)
}

// newInitiator returns one that is not in use.
func (p *peer) newInitiator() *replica.Initiator {
	if n := len(p.idleInitiators); n > 0 {
		a := p.idleInitiators[n-1]
		p.idleInitiators = p.idleInitiators[:n-1]
		return a
	}
	return replica.NewInitiator(p.replica, p.ledger)
}

// failed reports an exchange that broke off.
func (p *peer) failed(partner int, name key, err error) {
	delete(p.running, name)
	p.counts.Failed++
	p.broke(partner, fmt.Errorf("exchange %d with peer %d: %w", name.id, partner, err))
	event := averaging.Event{Kind: averaging.Failed, Peer: name.partner, Exchange: name.id, Inbound: name.inbound}
	if errors.Is(err, errOwn) {
		event.Reason = averaging.Unfit
	}
	p.tell(event)
}
