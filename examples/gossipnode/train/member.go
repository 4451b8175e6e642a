package train

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rundescription"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// member is this process in its run: the node, which stays, and the trainer of the moment. While the operator has it rest, it is
// the last one, whose model still can be looked at and saved. Who holds a member need not know when the trainer changes. Step, Serve,
// Ready and Factors belong to the training goroutine.
type member struct {
	*peer.Node
	at atomic.Pointer[tenure]
}

// tenure is a trainer, and how many versions of the model there were before it.
type tenure struct {
	*peer.Trainer
	before uint64
}

func memberOf(n *peer.Node, t *peer.Trainer) *member {
	m := &member{Node: n}
	m.at.Store(&tenure{Trainer: t})
	return m
}

// begin makes the node train that has prepared the data with others. Without a node it starts a peer.
func begin(ctx context.Context, t *training, p *preparing) (*member, error) {
	if t.ModelStages() > 1 {
		return beginStage(ctx, t, p)
	}
	with, err := t.trains()
	if err != nil {
		return nil, err
	}
	if p.node != nil {
		trainer, err := p.node.Train(ctx, with)
		return memberOf(p.node, trainer), err
	}
	p.network.Description = rundescription.Of(t.Settings, t.work.Data).Fields
	whole, err := peer.Start(ctx, peer.Config{Network: p.network, Training: with})
	if err != nil {
		return nil, err
	}
	return memberOf(whole.Node, whole.Trainer), nil
}

func (m *member) trainer() *peer.Trainer { return m.at.Load().Trainer }

// Step is peer.Trainer.Step, as the others are its methods of their names.
func (m *member) Step(ctx context.Context, gradient func(x, grad tensor.Vector) (peer.Result, error)) error {
	return m.trainer().Step(ctx, gradient)
}

func (m *member) Serve(ctx context.Context) error                       { return m.trainer().Serve(ctx) }
func (m *member) Batch(own int) int                                     { return m.trainer().Batch(own) }
func (m *member) Ready(from, samples int)                               { m.trainer().Ready(from, samples) }
func (m *member) Factors(at int, inputs, errs tensor.Vector)            { m.trainer().Factors(at, inputs, errs) }
func (m *member) Best(dst tensor.Vector) (right, loss float64, _ error) { return m.trainer().Best(dst) }

func (m *member) Save(params tensor.Vector, optimizer *optim.State) (peer.Checkpoint, error) {
	return m.trainer().Save(params, optimizer)
}

func (m *member) Snapshot(dst tensor.Vector, since uint64) (version uint64, err error) {
	now := m.at.Load()
	if version, err = now.Trainer.Snapshot(dst, since-now.before); err == nil { // one of a trainer before wraps round, and is none
		version += now.before
	}
	return version, err
}

// restEvery is the time between two looks of a member that rests whether the run is over.
const restEvery = 200 * time.Millisecond

// rest ends the training, as the operator asks, until it asks for training again, and returns the context of that. The node stays,
// with what else it does. Once the others have done the work it trains again too: to copy their model, and for the final merge.
func rest(ctx context.Context, t *training) (context.Context, error) {
	_ = t.peer.trainer().Close() // it never fails
	t.say("training no more, as the operator asks; this peer stays a member")
	ticker := time.NewTicker(restEvery)
	defer ticker.Stop()
	for again := t.duties.trains(); ; {
		select {
		case <-ctx.Done():
			return ctx, cli.ErrInterrupted
		case <-again:
			t.say("training again, as the operator asks")
			return t.duties.working(ctx), t.again(ctx)
		case <-ticker.C:
			t.progress(false)
			worked, left := doneWithout(t.peer.trainer().Stats(), t.peer.Members())
			if !worked && !left {
				continue
			}
			err := t.again(ctx)
			if err == nil && !worked { // a step would be due
				err = t.served(ctx)
			}
			return ctx, err
		}
	}
}

// endWait bounds the wait for the model, and for why the run has ended.
const endWait = time.Minute

// served takes part without a step until the run is over here too.
func (t *training) served(ctx context.Context) error {
	within, end := context.WithTimeout(ctx, endWait)
	defer end()
	if err := t.peer.Serve(within); ctx.Err() != nil || within.Err() == nil {
		return err
	}
	return peer.ErrRunOver
}

// restWait is how long a member that has finished waits for those that rest to see that, and to train again.
const restWait = 5 * restEvery

// awaitResting waits for the members that rest until they have the model too, before this one goes.
func (t *training) awaitResting(ctx context.Context) {
	rested := map[transport.PeerID]bool{}
	waits := func(m control.Member, waited time.Duration) bool {
		if m.State == control.Idle && m.Steps > 0 && m.ID != t.peer.Self() {
			rested[m.ID] = true
			return waited < restWait
		}
		return rested[m.ID] && m.State != control.Over
	}
	for began := time.Now(); ctx.Err() == nil && time.Since(began) < endWait; time.Sleep(restEvery / 10) {
		more := false
		for _, m := range t.peer.Members() {
			more = waits(m, time.Since(began)) || more
		}
		if !more {
			return
		}
	}
}

// again has the node train with a new trainer, from where the last one was, or from the flock's model if that is far ahead.
func (t *training) again(ctx context.Context) error {
	with, err := t.trains()
	if err != nil {
		return err
	}
	with.Params = tensor.NewParams(t.work.Params.Layout()) // who looks at the model of before may go on
	versions, err := t.peer.Snapshot(with.Params.Vector(), 0)
	var state optim.State
	if err == nil {
		with.Checkpoint, err = t.peer.Save(with.Params.Vector(), &state)
	}
	if err != nil {
		return err
	}
	if o, is := with.Optimizer.(optim.Stateful); is && state.Kind != "" {
		if err := o.Restore(state); err != nil {
			t.Log.Warn("the optimizer begins without the state of before", zap.Error(err))
		}
	}
	trainer, err := t.peer.Node.Train(ctx, with)
	if err == nil {
		t.peer.at.Store(&tenure{trainer, versions})
	}
	return err
}

// doneWithout tells whether the others have done the work while this member rests, and whether they say that the run is
// over.
func doneWithout(s stats.Peer, members []control.Member) (worked, left bool) {
	over, works := false, false
	for _, m := range members {
		over = over || m.State == control.Over
		works = works || m.ID != s.Self && m.State != control.Over && m.State != control.Idle
	}
	return s.Control.Stopped || s.Target > 0 && s.FlockSteps >= s.Target, over && !works
}
