package conversations

import (
	"context"
	"errors"
	"io"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/counters"
	"github.com/seed-97356399/murmuration/internal/harm"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/requests"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// transportCost is the processor time that moving a byte over an encrypted stream is taken
// to cost one peer, for the pace of exchanges only. It is a cautious assumption: a
// transport's work cannot be measured apart from its waiting. The work on the slices is
// measured.
const transportCost = 1.0 // nanoseconds

// helloTimeout bounds a hello that asks whether a partner speaks otherwise.
const helloTimeout = 2 * time.Second

// harmRemedy is what a user may do about a partner whose exchanges do harm.
const harmRemedy = "See what data it trains on; if they are like those of others, admit only the others (Network.Admission)."

// outcomes counts, logs and reports how conversations have ended.
type outcomes struct{ *base }

// ended reports the outcome of a conversation, and then ends its first stream. The stream
// is closed last, so that this peer's machine is free when the partner proposes the next
// exchange.
func (p *outcomes) ended(x *Ongoing, t *conversation, r session.Result) {
	if r.Ending == session.Resetting {
		t.Reset()
	}
	p.Counters.Retransmitted(r.Retransmitted)
	if x.codec != 0 && x.event.Transfer.Parts == 0 {
		p.watchBias(string(x.event.Peer))
		p.watchHarm(string(x.event.Peer))
	}
	p.doubt(x, r.InDoubt)
	if r.Quarantine > 0 && r.Outcome != session.Finished {
		p.Quarantine.added(x.event.Peer, r.Quarantine, r.Err)
	}
	switch r.Outcome {
	case session.Finished:
		p.completed(x, t, r)
		if r.Quarantine > 0 { // after the machine has heard that this one went well
			p.Quarantine.added(x.event.Peer, r.Quarantine, r.Err)
		}
		return
	case session.Failed:
		x.event.After = r.Waited
		p.failed(x, r.Err)
	case session.Refused:
		p.refused(x, r)
	case session.Declined:
		p.declined(x, r)
	case session.Malformed:
		p.Malformed(x.event.Peer, r.Reason, r.Err)
	case session.Nothing:
		if r.Err != nil && !errors.Is(r.Err, io.ErrUnexpectedEOF) {
			p.Log.Debug("a stream without a request, or an answer", zap.String("peer", string(x.event.Peer)), zap.Error(r.Err))
		}
	}
	t.finish(r.Ending)
}

// completed counts an exchange or a transfer and reports it.
func (p *outcomes) completed(x *Ongoing, t *conversation, r session.Result) {
	bytes := x.sent.Load() + x.got.Load()
	took := time.Since(x.began)
	cost := time.Duration(x.work.Load()) + time.Duration(transportCost*float64(bytes))
	values := 2 * uint64(p.Host.Replica.SharedLen())
	if m := x.event.Transfer; m.Parts > 0 {
		share := func(part int) uint64 { return uint64(p.Host.Replica.SharedLen()) * uint64(part) / uint64(m.Parts) }
		values = share(m.Part+1) - share(m.Part)
	} else {
		p.Counters.Distance(r.Distance)
	}
	p.Counters.Completed(counters.Completed{
		Inbound: x.event.Inbound, Values: values, Bytes: bytes, Took: took, Cost: cost, Steps: p.Flock.Steps() - x.steps,
	})
	x.event.Kind, x.event.Cost = averaging.Finished, cost
	x.event.Distance, x.event.Bytes = r.Distance, bytes
	p.Loop.Event(x.event)
	t.finish(r.Ending)
	p.Hooks.Exchanged(x.event, took, nil)
}

// watchBias warns once, after an exchange, of a partner whose differences have a
// directional bias.
func (p *outcomes) watchBias(partner string) {
	bias, news := p.Host.Replica.OneSided(partner)
	if !news {
		return
	}
	p.Log.Warn("a partner pushes in one direction: each difference is within the bound, together they are not by chance. "+
		"See what data it trains on; if they are like those of others, admit only the others (Network.Admission)",
		zap.String("peer", partner), zap.Float64("pull", bias.Ratio), zap.Uint64("exchanges", bias.Exchanges))
}

// watchHarm logs once for each partner, after an exchange with it, that its exchanges do harm.
func (p *outcomes) watchHarm(partner string) {
	done, news := p.Host.Replica.Judgement().Distrusted(partner)
	if !news {
		return
	}
	p.Log.Warn("exchanges with a partner raise this peer's loss more than those with others do: it moves this model less",
		zap.String("peer", partner), zap.Float64("harm", done.Harm), zap.Float64("trust", done.Trust),
		zap.Uint64("exchanges", done.Exchanges), zap.String("remedy", harmRemedy))
}

// refused reports a proposal that the partner refused.
func (p *outcomes) refused(x *Ongoing, r session.Result) {
	p.Counters.Refused(r.Reason)
	x.event.Kind, x.event.Reason = averaging.Refused, replica.RefusedFor(r.Reason)
	switch {
	case r.Reason == wire.ReasonVersion && !p.speaksOtherwise(x.event.Peer):
		x.event.Reason = averaging.Closing
		p.Log.Info("a member could not read a proposal, though it speaks as this peer does; it is asked again later",
			zap.String("peer", string(x.event.Peer)), zap.Error(r.Err))
	case r.Reason.Permanent():
		p.Log.Warn("a member refuses to exchange", zap.String("peer", string(x.event.Peer)), zap.Error(r.Err))
	case r.Reason == wire.ReasonNotMember:
		p.Presence.Compare(x.event.Peer)
	case r.Reason == wire.ReasonQuarantine:
		p.Log.Warn("a member keeps this peer in quarantine", zap.String("peer", string(x.event.Peer)), zap.Error(r.Err))
	}
	p.Loop.Event(x.event)
}

// speaksOtherwise checks with a hello whether a partner that refused a proposal for its version
// really has another version. The version is read before the checksum, so it may have been
// damaged on the way, and a partner of another version is not asked again until the view changes.
func (p *outcomes) speaksOtherwise(partner transport.PeerID) bool {
	ctx, cancel := context.WithTimeout(p.Life.Working, helloTimeout)
	defer cancel()
	_, err := p.Arrival.Hello(ctx, partner)
	_, refused := errors.AsType[*transport.RefusedError](err)
	return refused
}

// declined counts a request that this side declined, and logs it where an operator should
// know.
func (p *outcomes) declined(x *Ongoing, r session.Result) {
	p.Counters.Declined(r.Reason)
	if r.Reason.Permanent() {
		p.Log.Warn("refused a peer's proposal", zap.String("peer", string(x.event.Peer)),
			zap.Stringer("reason", r.Reason), zap.String("detail", r.Detail), zap.String("remedy", r.Reason.Remedy()))
	}
}

// unreached reports an exchange whose partner could not be reached.
func (p *outcomes) unreached(x *Ongoing, err error) {
	p.Host.Links.Ended(x.event.Peer, links.Waits{Took: time.Since(x.began)}, err)
	if links.RanOut(err) {
		x.event.After = time.Since(x.began)
	}
	p.failed(x, err)
}

// failed counts an exchange that broke off and reports it.
func (p *outcomes) failed(x *Ongoing, err error) {
	x.event.Kind = averaging.Failed
	p.unsendable(x, err)
	defer p.Loop.Event(x.event)
	if p.Life.IsClosing() {
		return // broken off by this side
	}
	p.Counters.Failed(err, x.event.Inbound)
	if _, theirs := replica.Blame(err); !theirs {
		p.Log.Info("an exchange broke off; the slices done stay done and the next partner is asked",
			zap.String("peer", string(x.event.Peer)), zap.Bool("inbound", x.event.Inbound), zap.Error(err))
	}
	p.Hooks.Exchanged(x.event, 0, err)
}

// unsendable reports a fault of this side's own values to the machine and to the trainer's next step.
func (p *outcomes) unsendable(x *Ongoing, err error) {
	own, ok := errors.AsType[*session.OwnFault](err)
	if !ok {
		return
	}
	x.event.Reason = averaging.Unfit
	if p.Host.Traits.Gradients && x.event.Transfer.From != collective.Parameters {
		p.Trainer.Unfit(own.Err)
	}
}

// doubt counts the slices that the partner may have applied and this side has not.
func (p *outcomes) doubt(x *Ongoing, slices int) {
	if slices == 0 {
		return
	}
	p.Loop.Doubts()
	p.Log.Info("slices are in doubt after an exchange that broke off; the partner will be asked about them",
		zap.String("peer", string(x.event.Peer)), zap.Int("slices", slices))
}

// Quarantine keeps away, for a period, partners that broke the protocol or whose exchanges do
// grave harm, and reports them.
type Quarantine struct {
	*requests.Requests // of which Counters and Log are used
	Links              *links.Links
	Life               *tasks.Life // of the trainer; exchanges in flight end with its Working
	Loop               Loop
	Hooks              Hooks
}

// Quarantined is for how much longer a partner is kept away, 0 if it is not.
func (q *Quarantine) Quarantined(partner transport.PeerID) time.Duration {
	return q.Links.Quarantined(partner, q.Life.Now())
}

// Add keeps a partner away for a while, and reports it.
func (q *Quarantine) Add(partner transport.PeerID, cause error) {
	q.added(partner, q.Links.Quarantine(partner, q.Life.Now()), cause)
}

// added reports a partner that is kept away for a while.
func (q *Quarantine) added(partner transport.PeerID, period time.Duration, cause error) {
	q.Counters.Quarantined()
	if done, harms := errors.AsType[*harm.Error](cause); harms {
		q.Log.Warn("a partner's exchanges do harm beyond doubt, and it is kept away",
			zap.String("peer", string(partner)), zap.Duration("for", period), zap.Float64("harm", done.Harm.Harm),
			zap.Uint64("exchanges", done.Exchanges), zap.String("remedy", harmRemedy))
	} else {
		q.Log.Warn("a partner broke the rules of the exchange and is kept away; nothing of what it sent last was applied",
			zap.String("peer", string(partner)), zap.Duration("for", period), zap.Error(cause),
			zap.String("remedy", wire.ReasonProtocol.Remedy()))
	}
	q.Hooks.Quarantined(partner, period, cause)
	q.Loop.Event(collective.Event{Event: averaging.Event{Kind: averaging.Quarantined, Peer: partner, After: period}})
}
