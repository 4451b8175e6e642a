package peer

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/topology"
)

// serveOffer answers the offer of a transfer, and takes it in if the machine wants it.
func (p *Peer) serveOffer(t *talk, header wire.Header, offer wire.Offer) {
	x := newTracked(averaging.Event{
		Kind: averaging.Offered, Peer: topology.PeerID(t.stream.Remote()), Exchange: averaging.ExchangeID(header.Exchange), Inbound: true,
		Transfer: replica.TransferOf(&offer),
	})
	x.add(t)
	if !p.underway.enter(x) {
		t.stream.Reset()
		return
	}
	defer p.underway.leave(x)
	terms, reason, detail := p.consider(x, t, offer)
	if reason == 0 {
		_, reason = p.ask(x, t)
	}
	if reason != 0 {
		p.decline(x, t, reason, detail)
		return
	}
	p.receive(x, t, terms)
}

// consider finds what makes a transfer impossible, whatever the machine thinks of it.
// The reason is 0 if nothing does.
func (p *Peer) consider(x *tracked, t *talk, m wire.Offer) (terms replica.TransferTerms, reason wire.Reason, detail string) {
	codecs, reason, detail := p.examine(t, wire.Propose{Run: m.Run, Layout: m.Layout, SliceLen: m.SliceLen, Cut: m.Cut, Codecs: m.Codecs})
	if reason != 0 {
		return terms, reason, detail
	}
	if p.together == nil && p.final == nil {
		return terms, wire.ReasonRound, "this peer averages models by exchanges, and takes no transfers"
	}
	if codecs = direct(codecs); len(codecs) == 0 {
		return terms, wire.ReasonCodec, "gradients are sent as raw, bf16, fp16 or int8"
	}
	if p.together == nil {
		if !slices.Contains(codecs, quant.Raw) {
			return terms, wire.ReasonCodec, "models are sent as raw"
		}
		codecs = replica.ExactTerms().Codecs
	}
	terms = replica.TransferTerms{Exchange: uint64(x.event.Exchange), Transfer: x.event.Transfer, Codecs: codecs}
	if err := terms.Check(); err != nil {
		p.condemn(t.stream.Remote(), err)
		return terms, wire.ReasonProtocol, err.Error()
	}
	return terms, 0, ""
}

// direct are those codecs of a list, in its memory, that need nothing at the receiver.
func direct(ids []quant.ID) []quant.ID {
	return slices.DeleteFunc(ids, func(id quant.ID) bool {
		codec, known := quant.ByID(id)
		return !known || codec.Lattice != (quant.Lattice{})
	})
}

// receive accepts a transfer and takes it in.
func (p *Peer) receive(x *tracked, t *talk, terms replica.TransferTerms) {
	r := p.oneWay.receiver(p.replica)
	defer p.oneWay.keepReceiver(r)
	err := r.Begin(terms)
	if err == nil {
		t.numbers = numbers(t.numbers, terms.Codecs)
		accept := wire.Accept{
			Codecs: t.numbers, Window: 1, Overlap: 1, Lanes: 1, Steps: p.counters.steps.Load(), Incarnation: p.incarnation.Load(),
		}
		if err = say(t, terms.Exchange, accept); err == nil {
			p.limit(x, t)
			p.begins(x, t, terms.Codecs)
			t.bulk()
			err = x.takeIn(r, t)
		}
	}
	if err == nil {
		err = t.sayTaken(terms.Exchange)
	}
	x.bytes.Add(t.sent + t.received)
	x.waited(t)
	if err == nil {
		p.moved(x, t.stream)
		return
	}
	if cause := x.cause(); cause != nil {
		err = cause
	}
	if reason, theirs := replica.Blame(err); theirs {
		t.refuse(terms.Exchange, reason, err.Error())
	} else {
		t.stream.Reset()
	}
	p.failed(x, err)
}

// sayTaken tells the sender that all has been taken in.
func (t *talk) sayTaken(exchange uint64) error {
	t.frame = wire.Reserve(t.frame)
	err := wire.Seal(t.frame, wire.Header{Type: wire.TypeTaken, Exchange: exchange})
	if err == nil {
		err = t.write(t.frame)
	}
	if err != nil {
		return fmt.Errorf("sending %v: %w", wire.TypeTaken, err)
	}
	return nil
}

// takeIn takes all parts in.
func (x *tracked) takeIn(r *replica.Receiver, t *talk) error {
	for !r.Done() {
		header, payload, err := t.next()
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("waiting for a part: %w", err)
		}
		if header.Type != wire.TypePart {
			return fmt.Errorf("waiting for %v: got %v: %w", wire.TypePart, header.Type, wire.ErrType)
		}
		began := time.Now()
		err = r.Part(header, payload)
		x.worked(began)
		if err != nil {
			return err
		}
	}
	return nil
}

// moved counts a transfer that is complete and reports it.
func (p *Peer) moved(x *tracked, stream seam.Stream) {
	bytes, m := x.bytes.Load(), x.event.Transfer
	share := func(part int) uint64 { return uint64(p.replica.SharedLen()) * uint64(part) / uint64(m.Parts) }
	done := Exchanged{Partner: seam.PeerID(x.event.Peer), Inbound: x.event.Inbound, Bytes: bytes, Took: time.Since(x.began)}
	cost := time.Duration(x.work.Load()) + time.Duration(transportCost*float64(bytes))
	p.counters.moved(done, cost, share(m.Part+1)-share(m.Part))
	p.counters.tallies.durations.add(done.Took)
	p.counters.tallies.grew(p.counters.steps.Load() - x.steps)
	p.learn(x, nil)
	x.event.Kind, x.event.Cost, x.event.Bytes = averaging.Finished, cost, bytes
	p.notify(notice{event: x.event})
	stream.Close()
	p.hooks.exchanged(done)
}
