package pipeline

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/stages"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// run is what the parts of a pipeline share.
type run struct {
	with    Config
	node    *peer.Node
	trainer *peer.Trainer
	service *peer.Service
	began   time.Time
	life    context.Context // ends with Close, or a fault
	fail    context.CancelCauseFunc
	tasks   tasks.Group
	mu      sync.Mutex // over the schedules, and what is held for them
	jobs    chan job   // for the goroutine that calls Step
}

// outputs is how many values come back of so many examples whose outputs are wanted: none where the last stage stays with the rows.
func (r *run) outputs(examples int) int {
	if r.with.Plan.ends {
		return 0
	}
	return examples * r.with.Plan.Whole.Out().Len()
}

// round is that of a micro-batch as it travels, from 1; 0 if it is of none.
func (r *run) round(id stages.ID) uint64 {
	if !r.with.Rounds || id.Asks {
		return 0
	}
	return id.Round + 1
}

func (r *run) now() time.Duration { return time.Since(r.began) }

// send sends a parcel to a member of a stage, and tells what becomes of it, unless ctx ends before.
func (r *run) send(ctx context.Context, to transport.PeerID, stage int, what parcel, answered func(o outcome, err error)) {
	r.tasks.Spawn(func() {
		var o outcome
		err := r.service.Ask(ctx, to, func(s *framed.Stream) (err error) {
			o, err = request(s, stage, what)
			return err
		})
		if ctx.Err() == nil {
			answered(r.judged(to, o, err))
		}
	})
}

// judged tells of faults of the other side. A member that refuses what it was sent takes it to be of no use. The error is not
// nil if nothing will be heard any more.
func (r *run) judged(from transport.PeerID, o outcome, err error) (outcome, error) {
	refusal, refused := errors.AsType[*wire.Refusal](err)
	switch {
	case err == nil:
		return o, nil
	case refused && refusal.Reason == wire.ReasonProtocol:
		r.with.Log.Warn("a member refuses a micro-batch", zap.String("peer", string(from)), zap.Error(err))
		return outcome{answer: stages.GivenUp}, nil
	case errors.Is(err, wire.ErrMessage):
		r.with.Log.Warn("a member answers a micro-batch with what is no answer", zap.String("peer", string(from)), zap.Error(err))
	default:
		r.with.Log.Debug("a micro-batch is sent to another member", zap.String("peer", string(from)), zap.Error(err))
	}
	return o, err
}
