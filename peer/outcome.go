package peer

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// transportCost is the processor time that moving a byte over an encrypted
// stream is taken to cost one peer, for the pace of exchanges only. It is an
// assumption on the careful side: a transport's own work cannot be told from its
// waiting. The work on the slices is measured.
const transportCost = 1.0 // nanoseconds

// completed counts an exchange and reports it. Its first stream is closed last: the
// partner may then propose the next, and finds this peer's machine free for it.
func (p *Peer) completed(x *tracked, distance float64, first seam.Stream) {
	bytes := x.bytes.Load()
	done := Exchanged{
		Partner: seam.PeerID(x.event.Peer), Inbound: x.event.Inbound,
		Distance: distance, Bytes: bytes, Took: time.Since(x.began),
	}
	cost := time.Duration(x.work.Load()) + time.Duration(transportCost*float64(bytes))
	p.counters.exchanged(done, cost)
	p.counters.tallies.durations.add(done.Took)
	p.counters.tallies.grew(p.counters.steps.Load() - x.steps)
	p.learn(x, nil)
	x.event.Kind, x.event.Cost = averaging.Finished, cost
	x.event.Distance, x.event.Bytes = distance, bytes
	p.notify(notice{event: x.event})
	first.Close()
	p.hooks.exchanged(done)
}

// measure takes what an exchange that this peer initiated shows of the link. One that
// ran out of most of its time, whichever end noticed first, shows how slow the link is;
// of others that broke off nobody knows for how long nothing moved.
func (p *Peer) measure(x *tracked, again int, done bool) {
	p.counters.again.Add(uint64(again))
	took := time.Since(x.began)
	if !done && !tellsOfLink(x.cause(), took >= p.config.Exchange.Deadline/2) {
		return
	}
	there := x.coded.Load()
	p.plans.links.saw(seam.PeerID(x.event.Peer), sample{
		bytes: max(there, x.bytes.Load()-there), took: took, agreed: x.agreed, round: x.round,
		failed: float64(again) / float64(max(p.replica.SharedBlocks(), 1)),
	}, time.Now())
}

// tellsOfLink tells whether an exchange that broke off ran out of time, and not because
// nothing moved.
func tellsOfLink(cause error, long bool) bool {
	return errors.Is(cause, errLate) || long && (errors.Is(cause, errAborted) || ranOut(cause))
}

// declined reports a proposal that the partner turned down, or that failed.
func (p *Peer) declined(x *tracked, err error) {
	var r *refusal
	if !errors.As(err, &r) {
		p.failed(x, err)
		return
	}
	p.counters.refused.Add(1)
	tally(&p.counters.tallies.refused, r.Reason)
	x.event.Kind, x.event.Reason = averaging.Refused, replica.RefusedFor(r.Reason)
	switch {
	case r.Reason == wire.ReasonVersion && !p.speaksOtherwise(seam.PeerID(x.event.Peer)):
		x.event.Reason = averaging.Closing
		p.log.Info("a member could not read a proposal, though it speaks as this peer does; it is asked again later",
			zap.String("peer", string(x.event.Peer)), zap.Error(err))
	case r.Reason.Permanent():
		p.log.Warn("a member refuses to exchange", zap.String("peer", string(x.event.Peer)), zap.Error(err))
	case r.Reason == wire.ReasonNotMember:
		p.makeKnown(seam.PeerID(x.event.Peer))
	case r.Reason == wire.ReasonQuarantine:
		p.log.Warn("a member keeps this peer in quarantine", zap.String("peer", string(x.event.Peer)), zap.Error(err))
	}
	p.notify(notice{event: x.event})
}

// speaksOtherwise asks a partner that finds another version in a proposal by a hello. The
// version is read before the checksum: it may have been damaged on the way, and who is
// taken for one of another version is asked no more until the view changes.
func (p *Peer) speaksOtherwise(partner seam.PeerID) bool {
	ctx, cancel := context.WithTimeout(p.exchanges, probeTimeout)
	defer cancel()
	_, err := p.hello(ctx, partner)
	var refused *RefusedError
	return errors.As(err, &refused)
}

// failed counts an exchange that broke off and reports it.
func (p *Peer) failed(x *tracked, err error) {
	x.event.Kind = averaging.Failed
	p.unsendable(x, err)
	p.learn(x, err)
	defer p.notify(notice{event: x.event})
	select {
	case <-p.closing:
		return // broken off by ourselves
	default:
	}
	partner := seam.PeerID(x.event.Peer)
	p.counters.failed.Add(1)
	p.counters.tallies.broke(err, x.event.Inbound)
	if _, theirs := replica.Blame(err); theirs {
		p.condemn(partner, err)
	} else {
		p.log.Info("an exchange broke off; the slices done stay done and the next partner is asked",
			zap.String("peer", string(x.event.Peer)), zap.Bool("inbound", x.event.Inbound), zap.Error(err))
	}
	p.hooks.failed(partner, err)
}

// doubt counts the slices that the partner may have applied and this side has not.
func (p *Peer) doubt(x *tracked, slices int) {
	if slices == 0 {
		return
	}
	p.counters.doubted.Add(uint64(slices))
	p.tellDoubts()
	p.log.Info("slices are in doubt after an exchange that broke off; the partner will be asked about them",
		zap.String("peer", string(x.event.Peer)), zap.Int("slices", slices))
}
