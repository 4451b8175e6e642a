package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/topology"
)

// serveExchange answers one inbound exchange.
func (p *Peer) serveExchange(stream seam.Stream) {
	ctx, breakOff := context.WithCancel(p.exchanges)
	defer breakOff()
	stopWatch := context.AfterFunc(ctx, stream.Reset)
	defer stopWatch()
	t := p.talk(stream)
	defer p.end(t)
	var proposal wire.Propose
	header, err := t.hear(&proposal)
	if err != nil {
		p.malformed(t, stream, err)
		return
	}
	x := &tracked{
		event: averaging.Event{
			Kind: averaging.Proposed, Peer: topology.PeerID(stream.Remote()),
			Exchange: averaging.ExchangeID(header.Exchange), Inbound: true,
		},
		talk: t, began: time.Now(),
	}
	codec, reason, detail := p.examine(proposal)
	if reason == 0 {
		reason = p.ask(x, breakOff)
	}
	if reason != 0 {
		p.decline(x, reason, detail)
		return
	}
	if err := p.respond(x, codec); err != nil {
		p.doubt(x)
		p.failed(x, err)
		if reason, theirs := blame(err); theirs {
			t.refuse(header.Exchange, reason, err.Error())
		} else {
			stream.Reset()
		}
		return
	}
	stream.Close()
	p.completed(x, t.responder.Distance())
}

// examine finds what makes an exchange impossible, whatever the machine thinks of
// it. The reason is 0 if nothing does.
func (p *Peer) examine(m wire.Propose) (codec quant.Codec, reason wire.Reason, detail string) {
	if reason, detail = p.admissible(m.Run, m.Layout); reason != 0 {
		return codec, reason, detail
	}
	switch {
	case int(m.SliceLen) != p.replica.SliceLen():
		return codec, wire.ReasonLayout, fmt.Sprintf("slices here have %d values, yours %d: set Exchange.SliceLen alike", p.replica.SliceLen(), m.SliceLen)
	case !p.arrival.open():
		return codec, wire.ReasonBusy, "still copying the model"
	}
	for _, id := range m.Codecs {
		if codec, ok := quant.ByID(quant.ID(id)); ok {
			return codec, 0, ""
		}
	}
	return codec, wire.ReasonCodec, fmt.Sprintf("known here: %v", quant.Names())
}

// ask puts a proposal to the machine. The reason is 0 if it accepts.
func (p *Peer) ask(x *tracked, breakOff context.CancelFunc) wire.Reason {
	select {
	case <-p.closing:
		return wire.ReasonClosing
	default:
	}
	verdict := make(chan averaging.Action, 1)
	if !p.notify(notice{event: x.event, breakOff: breakOff, verdict: verdict}) {
		return wire.ReasonClosing
	}
	select {
	case action := <-verdict:
		if action.Kind == averaging.Accept {
			return 0
		}
		return reasonOf(action.Reason)
	case <-p.running.Done():
		return wire.ReasonClosing
	}
}

func reasonOf(r averaging.Reason) wire.Reason {
	switch r {
	case averaging.WrongRole:
		return wire.ReasonRole
	case averaging.Closing:
		return wire.ReasonClosing
	}
	return wire.ReasonBusy
}

// decline refuses a proposal and says so where an operator should know.
func (p *Peer) decline(x *tracked, reason wire.Reason, detail string) {
	p.counters.declined.Add(1)
	if reason.Permanent() {
		p.log.Warn("refused a peer's proposal", zap.String("peer", string(x.event.Peer)),
			zap.Stringer("reason", reason), zap.String("detail", detail), zap.String("remedy", reason.Remedy()))
	}
	x.talk.refuse(uint64(x.event.Exchange), reason, detail)
}

// respond accepts and serves the slices until all are applied at both sides.
func (p *Peer) respond(x *tracked, codec quant.Codec) error {
	id, t := uint64(x.event.Exchange), x.talk
	t.bulk(p.replica)
	t.responder.Begin(id, codec, p.config.Exchange.Window)
	accept := wire.Accept{
		Codec: uint8(codec.ID), Window: uint16(p.config.Exchange.Window),
		Steps: p.counters.steps.Load(), Incarnation: p.incarnation.Load(),
	}
	if err := t.say(id, accept); err != nil {
		return err
	}
	for !t.responder.Done() {
		header, payload, err := t.next()
		if err != nil {
			return fmt.Errorf("waiting for a slice: %w", err)
		}
		began := time.Now()
		switch header.Type {
		case wire.TypeCode:
			t.frame, err = t.responder.Code(header, payload, t.frame)
		case wire.TypeAck:
			err = t.responder.Ack(header)
		default:
			err = fmt.Errorf("waiting for a slice: got %v: %w", header.Type, wire.ErrType)
		}
		x.reading += time.Since(began)
		if err == nil && header.Type == wire.TypeCode {
			err = t.write(t.frame)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// blame gives the reason with which to refuse a partner whose frames failed with
// err. It reports false if the partner broke no rule: the stream ended or broke.
func blame(err error) (wire.Reason, bool) {
	for _, fault := range []error{replica.ErrOrder, replica.ErrWindow, replica.ErrAbsurd, quant.ErrSize, quant.ErrNotFinite} {
		if errors.Is(err, fault) {
			return wire.ReasonProtocol, true
		}
	}
	return wire.ReasonFor(err)
}

// doubt counts the slices that the partner may have applied and this side has
// not.
func (p *Peer) doubt(x *tracked) {
	if n := x.talk.responder.InDoubt(); n > 0 {
		p.counters.inDoubt.Add(uint64(n))
		p.log.Info("slices left in doubt by an exchange that broke off are dropped",
			zap.String("peer", string(x.event.Peer)), zap.Int("slices", n))
	}
}

// malformed ends a stream on which no request could be read.
func (p *Peer) malformed(t *talk, stream seam.Stream, err error) {
	reason, theirs := wire.ReasonFor(err)
	if !theirs {
		stream.Reset() // nobody is there to be told, or the peer is closing
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			p.log.Debug("a stream without a request", zap.String("peer", string(stream.Remote())), zap.Error(err))
		}
		return
	}
	p.counters.declined.Add(1)
	p.log.Warn("refused a stream that speaks otherwise", zap.String("peer", string(stream.Remote())),
		zap.Error(err), zap.String("remedy", reason.Remedy()))
	t.refuse(0, reason, err.Error())
}
