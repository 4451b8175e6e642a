package peer

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// transfer sends the slices and applies the answers, over the stream of the
// proposal and as many further lanes as were agreed. It reports whether the
// partner is known to have applied all; what went wrong is the exchange's cause.
func (p *Peer) transfer(x *tracked, a *replica.Initiator, t *talk) (clean bool) {
	t.bulk()
	join := func() bool { return true }
	if err := hearRanges(a, t); err != nil {
		x.breakOff(err)
	} else if a.Lanes() > 1 {
		join = p.spread(x, a)
	}
	x.drive(a.Lane(0), t)
	clean = join()
	if x.cause() != nil || !t.drain() { // the partner closes it last
		clean = false
	}
	x.moved(t)
	return clean && a.Done()
}

// hearRanges reads what the partner has to tell of its model before slices can be
// coded, if it has.
func hearRanges(a *replica.Initiator, t *talk) error {
	for !a.Ranged() {
		header, payload, err := t.await(wire.TypeRanges)
		switch {
		case err != nil:
			return err
		case header.Type == wire.TypeRefuse:
			return refused(payload)
		case header.Type != wire.TypeRanges:
			return fmt.Errorf("waiting for %v: got %v: %w", wire.TypeRanges, header.Type, wire.ErrType)
		}
		if err := a.Ranges(header, payload); err != nil {
			return err
		}
	}
	return nil
}

// moved counts what went over a lane of an exchange that this side initiated.
func (x *tracked) moved(t *talk) {
	x.bytes.Add(t.sent + t.received)
	x.coded.Add(t.sent)
	x.waited(t)
}

// spread drives the further lanes. What it returns waits until they have ended, and
// reports whether the partner is known to have applied all that went over them.
func (p *Peer) spread(x *tracked, a *replica.Initiator) (join func() (clean bool)) {
	opening, enough := context.WithCancel(p.exchanges)
	x.opens(enough)
	var lanes sync.WaitGroup
	var unclean atomic.Bool
	for i := 1; i < a.Lanes(); i++ {
		lanes.Go(func() {
			if !p.further(opening, x, a, i) {
				unclean.Store(true)
			}
		})
	}
	return func() bool {
		enough() // nothing is left for a lane that is not open yet
		lanes.Wait()
		return !unclean.Load()
	}
}

// further opens one more lane and drives it. One that cannot be had leaves its
// share to the others.
func (p *Peer) further(ctx context.Context, x *tracked, a *replica.Initiator, lane int) (clean bool) {
	dialer, ok := p.transport.(seam.LaneDialer)
	if !ok {
		return true
	}
	open, cancel := context.WithTimeout(ctx, p.config.Exchange.Stall)
	stream, err := dialer.OpenLane(open, seam.PeerID(x.event.Peer), seam.ProtocolExchange, p.config.Run, lane)
	cancel()
	if err != nil {
		p.log.Debug("a lane could not be opened; the others do its work",
			zap.String("peer", string(x.event.Peer)), zap.Int("lane", lane), zap.Error(err))
		return true
	}
	t := p.talk(stream)
	t.stall, t.codec = p.patience(stream.Remote()), x.codec
	p.limit(x, t)
	defer p.end(t)
	defer x.moved(t)
	if ctx.Err() != nil {
		stream.Reset() // it has come too late to be of use
		return x.cause() == nil
	}
	if !x.add(t) {
		stream.Reset()
		return false
	}
	t.bulk()
	if err := say(t, uint64(x.event.Exchange), wire.Lane{Lane: uint8(lane)}); err != nil {
		stream.Reset() // it has carried no slice yet
		return x.cause() == nil
	}
	if !x.drive(a.Lane(lane), t) {
		p.lame.note(seam.PeerID(x.event.Peer), time.Now())
	}
	return x.cause() == nil && t.drain()
}

// drive carries one lane through: one goroutine writes, this one reads, so that
// both directions of the stream are in use. Afterwards the partner need only close
// its end, which it does once it has applied all that went over this lane. It
// reports false if waiting on this lane is what the exchange failed of.
func (x *tracked) drive(lane *replica.InitiatorLane, t *talk) (sound bool) {
	if x.cause() != nil {
		return true
	}
	t.calm()
	go func() { t.written <- x.send(lane, t) }()
	sound = true
	if err := x.receive(lane, t); err != nil {
		sound = !x.breakOff(err)
	}
	wake(t.opened)
	return <-t.written && sound
}

// send sends slices as the window allows, and at last the acknowledgement of them
// all. It reports as drive does.
func (x *tracked) send(lane *replica.InitiatorLane, t *talk) (sound bool) {
	for {
		began := time.Now()
		frame, ok, err := lane.Code(t.frame)
		t.frame = frame
		x.worked(began)
		switch {
		case err != nil:
		case ok:
			err = t.write(frame)
		case lane.Over():
			if frame, err = lane.Ack(t.frame); err == nil {
				t.frame = frame
				err = t.write(frame)
			}
			if err == nil {
				err = t.stream.CloseWrite() // the partner need not wait for what other lanes do
			}
			if err == nil {
				return true
			}
		default:
			if <-t.opened; x.cause() != nil {
				return true
			}
		}
		if err != nil {
			return !x.breakOff(fmt.Errorf("sending a slice: %w", err))
		}
	}
}

// receive applies differences until the lane has nothing left to wait for.
func (x *tracked) receive(lane *replica.InitiatorLane, t *talk) error {
	for !lane.Over() {
		header, payload, err := t.next()
		switch {
		case err == io.EOF && lane.Over():
			return nil // other lanes took what was left
		case err != nil:
			return fmt.Errorf("waiting for a difference: %w", eofIsUnexpected(err))
		case header.Type == wire.TypeRefuse:
			return refused(payload)
		case header.Type != wire.TypeDiff:
			return fmt.Errorf("waiting for a difference: got %v: %w", header.Type, wire.ErrType)
		}
		began := time.Now()
		err = lane.Diff(header, payload)
		x.worked(began)
		if err != nil {
			return err
		}
		wake(t.opened)
	}
	return nil
}
