package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/topology"
)

// transportCost is the processor time that moving a byte over an encrypted
// stream is taken to cost one peer, for the pace of exchanges only. It is an
// assumption on the careful side: a transport's own work cannot be told from its
// waiting. The work on the slices is measured.
const transportCost = 1.0 // nanoseconds

// tracked is an exchange under way at this peer.
type tracked struct {
	event   averaging.Event // Peer, Exchange and Inbound; Kind and the rest vary
	talk    *talk
	began   time.Time
	reading time.Duration // work on slices in the reading goroutine
	writing time.Duration // and in the writing one
}

// initiate carries out an outbound exchange, from the proposal on, and reports
// its course to the loop. Ending ctx breaks it off.
func (p *Peer) initiate(ctx context.Context, partner seam.PeerID, id averaging.ExchangeID) {
	x := &tracked{
		event: averaging.Event{Peer: topology.PeerID(partner), Exchange: id},
		began: time.Now(),
	}
	open, cancel := context.WithTimeout(ctx, p.config.Exchange.Stall)
	stream, err := p.transport.Open(open, partner, seam.ProtocolExchange, p.config.Run)
	cancel()
	if err != nil {
		p.failed(x, fmt.Errorf("opening a stream: %w", err))
		return
	}
	stopWatch := context.AfterFunc(ctx, stream.Reset)
	defer stopWatch()
	x.talk = p.talk(stream)
	defer p.end(x.talk)
	accept, codec, err := p.propose(x)
	if err != nil {
		stream.Close()
		p.declined(x, err)
		return
	}
	x.event.Kind = averaging.Accepted
	p.notify(notice{event: x.event})
	x.talk.bulk(p.replica)
	x.talk.initiator.Begin(uint64(id), codec, min(int(accept.Window), p.config.Exchange.Window))
	if err := p.transfer(x); err != nil {
		stream.Reset()
		p.failed(x, err)
		return
	}
	p.completed(x, x.talk.initiator.Distance())
}

// propose asks the partner and reads its answer.
func (p *Peer) propose(x *tracked) (accept wire.Accept, codec quant.Codec, err error) {
	err = x.talk.say(uint64(x.event.Exchange), wire.Propose{
		Run: p.config.Run, Layout: p.layout, View: p.counters.view.Load(), Incarnation: p.incarnation.Load(),
		Steps: p.counters.steps.Load(), SliceLen: uint32(p.replica.SliceLen()), Codecs: []uint8{uint8(p.codec.ID)},
	})
	if err != nil {
		return accept, codec, err
	}
	if _, err = x.talk.hear(&accept); err != nil {
		return accept, codec, err
	}
	if accept.Codec != uint8(p.codec.ID) {
		return accept, codec, fmt.Errorf("the partner accepts with codec %d, which was not offered: %w", accept.Codec, wire.ErrMessage)
	}
	return accept, p.codec, nil
}

// transfer sends the slices and applies the answers: one goroutine writes, this
// one reads, so that both directions of the stream are in use.
func (p *Peer) transfer(x *tracked) error {
	applied := make(chan struct{}, 1) // signals that the window may have opened
	written := make(chan error, 1)
	go func() {
		err := x.writeCodes(applied)
		if err != nil {
			x.talk.stream.Reset() // ends a reader that waits for answers
		}
		written <- err
	}()
	err := x.readDiffs(applied)
	close(applied)
	if err != nil {
		x.talk.stream.Reset() // ends a writer that waits for the stream
	}
	if writeErr := <-written; err == nil {
		err = writeErr
	}
	if err == nil {
		x.talk.finish()
	}
	return err
}

// writeCodes sends slices as the window allows, and at last the acknowledgement
// of them all.
func (x *tracked) writeCodes(applied <-chan struct{}) error {
	for {
		began := time.Now()
		frame, ok, err := x.talk.initiator.Code(x.talk.frame)
		x.talk.frame = frame
		x.writing += time.Since(began)
		if err != nil {
			return err
		}
		if ok {
			if err := x.talk.write(frame); err != nil {
				return fmt.Errorf("sending a slice: %w", err)
			}
			continue
		}
		if _, more := <-applied; !more && !x.talk.initiator.Done() {
			return nil // the reader knows why
		}
		if x.talk.initiator.Done() {
			frame, err := x.talk.initiator.Ack(x.talk.frame)
			if err != nil {
				return err
			}
			x.talk.frame = frame
			return x.talk.write(frame)
		}
	}
}

// readDiffs applies differences until there is one for every slice.
func (x *tracked) readDiffs(applied chan<- struct{}) error {
	for !x.talk.initiator.Done() {
		header, payload, err := x.talk.next()
		if err != nil {
			return fmt.Errorf("waiting for the difference of slice %d: %w", x.talk.initiator.Applied(), err)
		}
		if header.Type == wire.TypeRefuse {
			return refused(payload)
		}
		if header.Type != wire.TypeDiff {
			return fmt.Errorf("waiting for the difference of slice %d: got %v: %w", x.talk.initiator.Applied(), header.Type, wire.ErrType)
		}
		began := time.Now()
		err = x.talk.initiator.Diff(header, payload)
		x.reading += time.Since(began)
		if err != nil {
			return err
		}
		select {
		case applied <- struct{}{}:
		default: // a signal waits already
		}
	}
	return nil
}

// completed counts an exchange and reports it.
func (p *Peer) completed(x *tracked, distance float64) {
	bytes := x.talk.sent + x.talk.received
	done := Exchanged{
		Partner: seam.PeerID(x.event.Peer), Inbound: x.event.Inbound,
		Distance: distance, Bytes: bytes, Took: time.Since(x.began),
	}
	cost := x.reading + x.writing + time.Duration(transportCost*float64(bytes))
	p.counters.exchanged(done, cost)
	p.hooks.exchanged(done)
	x.event.Kind, x.event.Cost = averaging.Finished, cost
	p.notify(notice{event: x.event})
}

// declined reports a proposal that the partner turned down, or that failed.
func (p *Peer) declined(x *tracked, err error) {
	var r *refusal
	if !errors.As(err, &r) {
		p.failed(x, err)
		return
	}
	p.counters.refused.Add(1)
	x.event.Kind, x.event.Reason = averaging.Refused, averaging.Busy
	switch {
	case r.Reason.Permanent():
		x.event.Reason = averaging.Unfit
		p.log.Warn("a member refuses to exchange", zap.String("peer", string(x.event.Peer)), zap.Error(err))
	case r.Reason == wire.ReasonClosing, r.Reason == wire.ReasonQuarantine, r.Reason == wire.ReasonProtocol:
		x.event.Reason = averaging.Closing
	case r.Reason == wire.ReasonRole:
		x.event.Reason = averaging.WrongRole
	}
	p.notify(notice{event: x.event})
}

// failed counts an exchange that broke off and reports it.
func (p *Peer) failed(x *tracked, err error) {
	x.event.Kind = averaging.Failed
	defer p.notify(notice{event: x.event})
	select {
	case <-p.closing:
		return // broken off by ourselves
	default:
	}
	p.counters.failed.Add(1)
	if reason, theirs := blame(err); theirs {
		p.log.Warn("a partner broke the rules of the exchange", zap.String("peer", string(x.event.Peer)),
			zap.Uint64("exchange", uint64(x.event.Exchange)), zap.Error(err), zap.String("remedy", reason.Remedy()))
	} else {
		p.log.Info("an exchange broke off; the slices done stay done and the next partner is asked",
			zap.String("peer", string(x.event.Peer)), zap.Bool("inbound", x.event.Inbound), zap.Error(err))
	}
	p.hooks.failed(seam.PeerID(x.event.Peer), err)
}
