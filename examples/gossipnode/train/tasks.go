package train

import (
	"cmp"
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/host"
	planned "github.com/seed-97356399/murmuration/examples/gossipnode/plan"
	"github.com/seed-97356399/murmuration/examples/gossipnode/tasks"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/plan"
	"github.com/seed-97356399/murmuration/tensor"
)

const (
	// meetEvery is the time between two meetings of the members: what is done is told then, and plans change.
	meetEvery = time.Second
	// newest is what the last batch counts in a member's speed.
	newest = 0.1
)

// worker carries out tasks with other members.
type worker struct {
	*training
	tasks.Queue
	member plan.Member
	known  []plan.Task // as last read from the file
	weight plan.Weights
	model  tensor.Vector // that is evaluated
	ahead  float64       // seconds by which the others have begun sooner
}

// carryOut does tasks until all members together have done all, and returns the time that this took.
func (t *training) carryOut(ctx context.Context) (time.Duration, error) {
	w := &worker{training: t, member: plan.Member{Name: t.PeerName() + " " + t.peer.Self().Short(), Memory: float64(host.Memory())}, model: make(tensor.Vector, t.work.Params.Layout().Len())}
	if t.work.Data.Train == nil {
		return 0, cli.Config(cli.Faultf("tasks", "the training data does not fit into memory, where samples have numbers: give more --memory"))
	}
	err := t.peer.Step(ctx, firstGradient(ctx, t, func(x, grad tensor.Vector) (peer.Result, error) {
		for range 2 { // the first is slow
			began := time.Now()
			if _, err := t.gradient(ctx, x, grad); err != nil {
				return peer.Result{}, err
			}
			w.member.Speed = float64(t.batch.Len()) / time.Since(began).Seconds()
		}
		clear(grad) // its samples are of no task
		return peer.Result{Samples: t.batch.Len()}, nil
	}))
	for more := true; more && err == nil; {
		if more, err = w.meet(ctx); more && err == nil {
			err = w.workUntil(ctx, time.Now().Add(meetEvery))
		}
	}
	if t.tasks = w.Counts(); ctx.Err() != nil {
		err = cli.ErrInterrupted
	}
	return t.elapsed(), err
}

// now is on the clock that all plan by.
func (w *worker) now() float64 { return w.elapsed().Seconds() + w.ahead }

// meet plans with the others. A file that cannot be read, since it is being written, counts as it was.
func (w *worker) meet(ctx context.Context) (more bool, err error) {
	state, err := planned.Read(w.TaskFile, w.member)
	if err == nil {
		w.known, w.weight = state.Tasks, state.Weights
	} else if w.known == nil {
		return false, cli.Config(cli.Faultf("tasks", "%s: %v", w.TaskFile, err))
	} else {
		w.Log.Warn("the tasks cannot be read: going on with those of before", zap.Error(err))
	}
	now, first := w.now(), w.Met() == 0
	if more, err = w.Meet(ctx, w.peer, plan.State{Now: now, Weights: w.weight, Members: []plan.Member{w.member}, Tasks: w.known}); first {
		w.ahead = w.Met() - now
	}
	if left := w.LeftOut(); left != nil {
		w.Log.Warn("a member's tasks and progress are not in the plan", zap.Error(left))
	}
	return more, err
}

// workUntil does this member's tasks until a moment.
func (w *worker) workUntil(ctx context.Context, moment time.Time) error {
	for time.Now().Before(moment) && ctx.Err() == nil {
		began := time.Now()
		task, from, to, ok := w.Next(w.Batch, w.now())
		if !ok {
			select {
			case <-time.After(time.Until(moment)):
			case <-ctx.Done():
			}
			break
		}
		start := w.now()
		accuracy, err := w.do(ctx, task, from, to)
		if err != nil {
			return err
		}
		w.Did(task, from, to, start, w.now(), accuracy)
		w.member.Speed += newest * (float64(to-from)*cmp.Or(task.Cost, 1)/time.Since(began).Seconds() - w.member.Speed)
		w.progress(false)
	}
	return nil
}

// do does samples of a task: sample i is picture i of the data that all have; of an evaluation, of the held-out data.
func (w *worker) do(ctx context.Context, task plan.Task, from, to int) (accuracy float64, err error) {
	set, indices := w.work.Data.Train, make([]int32, to-from)
	if task.Kind == plan.Evaluation {
		set = w.work.Data.HeldOut
	}
	for i := range indices {
		indices[i] = int32((from + i) % set.Len())
	}
	some := set.Subset(indices)
	if task.Kind != plan.Evaluation {
		return 0, w.peer.Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) {
			some.Fill(&w.batch, 0, some.Len())
			return w.learned(ctx, x, grad)
		})
	}
	if _, err := w.peer.Snapshot(w.model, 0); err != nil {
		return 0, err
	}
	accuracy, _ = w.work.Model.Evaluate(w.model, some)
	return accuracy, nil
}
