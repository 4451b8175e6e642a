package peer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/internal/conversations"
	"github.com/seed-97356399/murmuration/internal/counters"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/orders"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/stateserver"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/internal/trainer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// Trainer trains a model together with the others of its node's run. Step, Apply and Trade belong
// to one goroutine; every other method is safe for concurrent use.
type Trainer struct {
	node *Node
	with Training
	log  *zap.Logger

	replica       *replica.Replica
	links         *links.Links // rate, codec, lanes and quarantine of each partner
	conversations *conversations.Conversations
	joiner        *arrival.Joiner     // copies the flock's model
	server        *stateserver.Server // sends the model to joiners
	steps         *training
	driver        *driver
	life          *tasks.Life
	left          atomic.Pointer[Checkpoint] // of its end
	begun         chan struct{}              // closed when it has begun or failed to begin; it does not end before
}

// errTrains: a node trains one model at a time.
var errTrains = errors.New("this node trains already: close its trainer first")

// Train has a node train a model, beside its other services, until Trainer.Close. It does not wait for other members,
// and members that do not train yet do not count for the work. Nodes that are to train together each call
// Trainer.WaitTrainers before the first Step; otherwise a node that completes the steps before others begin ends the
// run alone. The context covers the start only. Train reports all faults of the configuration at once.
func (n *Node) Train(ctx context.Context, with Training) (*Trainer, error) {
	if err := errors.Join(with.faults()...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("training in run %q: %w", n.network.Run, err)
	}
	t, err := newTrainer(n, with.withDefaults())
	if err == nil {
		err = t.begin()
	}
	if err != nil {
		return nil, fmt.Errorf("training in run %q: %w", n.network.Run, err)
	}
	return t, nil
}

// newTrainer makes a trainer that has not begun yet.
func newTrainer(n *Node, with Training) (*Trainer, error) {
	if with.Work.Until.isSet() && !n.orders.Tells() {
		return nil, fmt.Errorf("%w: Work.Until needs messages between members: set Network.Control.Digests, or do not set it below 0", ErrConfig)
	}
	t := &Trainer{node: n, with: with, log: n.log, life: tasks.NewLife(), begun: make(chan struct{})}
	exchange, layout, stall := with.Exchange, with.Params.Layout().Hash(), n.network.fixed.stall
	var err error
	if t.replica, err = replica.New(with.Params, replica.Options{SliceLen: exchange.SliceLen, Clock: t.life.Now, Watch: rand.Uint64()}); err != nil {
		return nil, err
	}
	t.links = links.New(links.Config{
		Codecs: exchange.Codec, Layers: t.replica.JointLayers(), Lanes: exchange.Lanes,
		Stall: stall, Deadline: exchange.Deadline, Budget: exchange.Pace.BytesPerHour / time.Hour.Seconds(),
	})
	// The machine's random choices follow from the peer's identity.
	made, err := exchange.NewMachine(n.Self(), rand.New(rand.NewPCG(0, n.Self().Fingerprint())))
	if err != nil {
		return nil, fmt.Errorf("%w: Exchange.Machine: %w", ErrConfig, err)
	}
	machine, err := ready(made, t.replica, t.links)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	traits, hooks, after := machine.Traits(), &hooks{with.Hooks, make(turn, 1), make(turn, 1), make(turn, 1)}, with.Checkpoint.is
	quarantine := &conversations.Quarantine{Requests: n.requests, Links: t.links, Life: t.life, Loop: n.inbox, Hooks: hooks}
	t.joiner = arrival.NewJoiner(arrival.JoinerConfig{
		Layout: layout, Replica: t.replica, Quarantine: quarantine,
		Checkpoint: arrival.Checkpoint{Steps: after.Age, FlockSteps: after.FlockSteps, TellsWho: after.tellsWho()},
	}, n.arrival)
	// With a checkpoint without steps it is not known whether its parameters are the initial ones of the run.
	t.steps = &training{
		arrival: t.joiner, work: &work{flock: n.flock, orders: n.orders, log: t.log}, counters: n.counters, life: t.life, loop: n.inbox,
		fresh: after.Incarnation == 0,
	}
	t.steps.work.until = &evaluations{with: with.Work.Until, self: n.Self(), flock: n.flock, orders: n.orders, replica: t.replica, life: t.life, loop: n.inbox, log: t.log, agreed: make(chan struct{})}
	t.steps.work.until.agree = sync.OnceFunc(func() { close(t.steps.work.until.agreed) })
	t.steps.begin(trainer.Config{Replica: t.replica, Optimizer: with.Optimizer, Traits: traits, Pace: exchange.Pace}, t.log)
	t.conversations = conversations.New(conversations.Config{
		Host: session.Host{
			Run: n.network.Run, Layout: layout, Cut: t.replica.Cut(), Replica: t.replica, Ledger: replica.NewLedger(t.replica), Links: t.links,
			Lanes: exchange.Lanes, Deadline: exchange.Deadline, Traits: traits, Sealed: n.net.transport.Sealed(),
		},
		Membership: n.net.membership, Flock: n.flock, Presence: n.presence, Quarantine: quarantine,
		Arrival: n.arrival, Model: t.joiner, Trainer: t.steps,
	})
	t.server = stateserver.New(stateserver.Config{
		Requests: n.requests, Layout: layout, Replica: t.replica, Flock: n.flock,
		Model: t.joiner, Exchanges: t.conversations, Quarantine: quarantine, Closing: t.life.Closing,
	})
	course := orders.Course{Schedule: with.Schedule, Pace: exchange.Pace, Steps: with.Work.Steps, StepsPerPeer: with.Work.StepsPerPeer}
	t.driver = &driver{
		entry:   entry{after: after, shape: exchange.Topology, begun: course, listener: hooks, described: n.arrival.Described},
		machine: machine, replica: t.replica, steps: t.steps, conversations: t.conversations, presence: n.presence, memory: n.loop.memory,
		life: t.life, log: t.log, pace: exchange.Pace, running: make(map[conversations.Key]*conversations.Ongoing),
	}
	return t, nil
}

// begin starts the training of a node. The node may close meanwhile.
func (t *Trainer) begin() error {
	if !t.settle() {
		t.joiner.Close()
		if t.node.life.Leaving.Load() {
			return ErrClosed
		}
		return errTrains
	}
	err := t.enter()
	close(t.begun)
	if err != nil {
		t.end(nil)
	}
	return err
}

// settle makes this the node's trainer. It returns false if the node has another.
func (t *Trainer) settle() bool {
	self := tenant(t)
	taken := t.node.tenant.CompareAndSwap(nil, &self)
	if taken {
		t.with.Stage.announce(t.node.flock, t.with.Params)
	}
	return taken
}

// enter does the work of begin once this is the node's trainer.
func (t *Trainer) enter() error {
	n := t.node
	if n.life.Leaving.Load() || !n.inbox.await(notice{begins: t.driver}) {
		return ErrClosed
	}
	if err := t.serve(); err != nil {
		return err
	}
	n.arrival.Brings(t.joiner)
	t.joiner.Begin()
	return nil
}

// serve registers the protocols that others may speak to a member that trains.
func (t *Trainer) serve() error {
	n := t.node
	t.life.Background.Go(func() {
		counters.WatchStandstill(t.life.Running, n.counters, func() bool { return n.flock.Steps() > n.flock.Resumed() && !n.flock.IsOver() })
	})
	if t.with.Work.Until.isSet() {
		t.life.Background.Go(t.steps.work.until.run)
	}
	state := func(s *framed.Stream) error { return t.server.Serve(t.life.Working, s) }
	return n.net.serve(n.network.Run, t.life, append([]service{
		{transport.ProtocolExchange, t.conversations.Serve},
		{transport.ProtocolState, n.requests.Answering(state)},
	}, valuesOf(t)...))
}

// Snapshot copies the parameters into dst, which must have as many values as the layout, as they are at one moment between two
// steps, and returns their version. If the version is still since, that of an earlier snapshot, nothing is copied; 0 is never a
// version. Snapshot never stops the trainer. Safe for concurrent use.
func (t *Trainer) Snapshot(dst tensor.Vector, since uint64) (version uint64, err error) {
	if len(dst) != t.replica.Len() {
		return 0, fmt.Errorf("a snapshot of %d parameters into %d values: give a vector as long as the layout", t.replica.Len(), len(dst))
	}
	// dst may contain part of the changes from here on; the version returned is then older than dst.
	if version = t.replica.Changes() + 1; version != since {
		t.replica.Consistent(dst)
	}
	return version, nil
}

// Step takes one gradient step. It calls gradient with a snapshot x of the parameters and a zeroed grad to write the mean
// gradient into; both are valid until gradient returns and must not be kept. The snapshot may mix slices from before and after
// an exchange. No lock is held while the gradient is computed. Then it applies the optimizer's step and lets the machine decide
// whether to begin an exchange; exchanges run in the background and Step does not wait for them.
//
// The first call waits for joining: until a member has answered, or for three seconds if none does. After that the peer trains
// alone and keeps trying. A peer that comes to a flock that has already trained copies the flock's parameters first, from
// several members at once. A peer that trained alone and then finds a flock whose model is ahead copies that model too, at its
// next Step; a step under way is then discarded and not counted.
//
// It returns ErrRunOver when the flock has done its work, ErrClosed after Close, a *transport.RefusedError if the members that
// it asked refuse to let this peer join, optim.ErrNotFinite if the gradient or the step is not finite, the gradient's norm is
// beyond 1e18, or the step is about a million times longer than the model (nothing is applied; the caller may go on), or the
// error of gradient or ctx, wrapped (nothing is applied). Calls from two goroutines at once are an error. For several batches in
// one step see Accumulate.
//
// With an algorithm that averages gradients (lock-step, or with a server) Step hands the gradient over and waits for the update
// made of it. If ctx ends meanwhile, the gradient still counts in the update: the next call waits for that update, and reports
// it, before it computes another gradient. A gradient as long as the step above is left out of the mean; the Step fails, and the
// caller may go on.
func (t *Trainer) Step(ctx context.Context, gradient func(x, grad tensor.Vector) (Result, error)) error {
	return t.steps.alone(func() error { return t.steps.step(ctx, gradient) })
}

// Apply adds delta, a step that the caller's own optimizer made, and counts it as one
// gradient step. delta must have as many values as the layout. made describes the samples
// of the step; the zero Result says nothing. Apply waits and fails as Step does, with
// optim.ErrNotFinite if the model with delta would not be plausible to others; nothing is
// applied then.
func (t *Trainer) Apply(ctx context.Context, delta tensor.Vector, made Result) error {
	return t.steps.alone(func() error {
		return t.steps.trade(ctx, delta, nil, Made{Steps: 1, Samples: made.Samples, Loss: made.Loss})
	})
}

// Trade is for the caller's own optimizer, if that takes several steps at once on a copy of the
// parameters, x. base is the value of x when the caller last received it: from Trade, or from
// Snapshot before the first Trade. Trade adds x − base as made.Steps steps, and then overwrites
// both x and base with the current parameters. So the difference is in the sum of the peers'
// models exactly once, and the changes by exchanges meanwhile are kept. Both vectors must have as
// many values as the layout, and nobody else may use them while Trade runs. If x is written to
// nevertheless, values of different moments are added, never NaN, and later writes are lost or
// part of the next Trade. Trade allocates nothing.
//
// Trade waits and fails as Step does: with optim.ErrNotFinite if x holds NaN or infinite values,
// or is farther from base than is plausible to others. x, base and the model are then unchanged.
// If the flock's model has replaced this one, x − base is discarded and not counted, like a step
// under way, and both are overwritten with the new model. Steps are reported to the algorithm
// one by one, so an algorithm that exchanges every few steps still does so, between two calls.
func (t *Trainer) Trade(ctx context.Context, x, base tensor.Vector, made Made) error {
	if base == nil {
		base = tensor.Vector{} // Apply has no base
	}
	return t.steps.alone(func() error { return t.steps.trade(ctx, x, base, made) })
}

// Serve takes part without steps, as a parameter server that does not train (baseline.Config.ServeOnly), until the run is
// over. It returns what Step does when it makes none: ErrRunOver, ErrClosed, or why the peer cannot take part. Parameters
// are served from the start on; Serve only waits.
func (t *Trainer) Serve(ctx context.Context) error {
	return t.steps.alone(func() error { return t.steps.serve(ctx) })
}

// Batch is the number of samples for the next gradient, such that all peers take equally long. The algorithm divides the flock's
// work by the peers' speeds; if it does not, Batch returns own. Report the number used in Result.Samples. It changes from step
// to step. Safe for concurrent use.
func (t *Trainer) Batch(own int) int {
	if wish := t.steps.batch.Load(); wish > 0 {
		return int(wish)
	}
	return own
}

// Version is that of the parameters at which the gradient function of Step is called, by which members that make all updates
// together, as AllReduce does, number these: 1 is that with which all begin. It is 0 until it is known, as it is not to who comes
// before its first Step has returned, and with other algorithms.
func (t *Trainer) Version() uint64 { return t.steps.updates.at(t.steps.initial()) }

// Save copies the parameters into params, which must have as many values as the layout, and the optimizer's state into optimizer
// (see optim.Stateful; not nil), whose vectors it uses again if they have the right length. Both are of one moment between two
// steps; the Checkpoint is their history, after Close that until then. With the three as Training.Params, the state of
// Training.Optimizer and Training.Checkpoint, a later life of the peer goes on from here. A step at the same time waits while
// the optimizer's vectors are copied, for no longer than the optimizer takes to make a step.
func (t *Trainer) Save(params tensor.Vector, optimizer *optim.State) (Checkpoint, error) {
	if len(params) != t.replica.Len() {
		return Checkpoint{}, fmt.Errorf("saving %d parameters into %d values: give a vector as long as the layout", t.replica.Len(), len(params))
	}
	// The checkpoint is read first: the parameters may be a step ahead of it, never behind.
	c := done(t.node.flock, t.node.orders, t.node.Description())
	t.steps.Save(params, optimizer)
	if end := t.left.Load(); end != nil {
		return *end, nil
	}
	return c, nil
}

// WaitTrainers waits until at least so many members train, this one included. It fails as Node.WaitMembers does.
func (t *Trainer) WaitTrainers(ctx context.Context, least int) error {
	return t.node.await(ctx, t.life, least, "members that train", func() int {
		idle := func(r transport.Record) bool { return !flock.Trains(r) }
		return 1 + len(slices.DeleteFunc(t.node.flock.Records(), idle))
	})
}

// Close ends the training. If the run is over here, the trainer first serves the others until it is over for
// all, within Work.Grace. Then it lets the exchanges in flight finish, within five seconds, asks partners about
// slices in doubt of earlier exchanges, within Work.Grace, and waits for every goroutine of its own. It does not
// wait for a gradient that is being computed: a Step or Apply that ends later changes nothing and returns
// ErrClosed, so the parameters stay as they are when Close returns. The node stays in the run, and may train
// again while others of the run do: its step count goes on, and a finished run stays finished. Close is
// idempotent.
func (t *Trainer) Close() error {
	t.end(nil)
	return nil
}

// end is Close for a node that leaves with its trainer; leave announces the departure.
func (t *Trainer) end(leave func()) {
	<-t.begun
	first := t.life.Leave()
	if first && t.node.flock.IsOver() {
		t.linger()
		t.steps.work.until.await()
	}
	if leave != nil {
		leave()
	}
	if !first {
		return
	}
	defer close(t.life.Closed)
	exchanges, repairs, rest := t.node.network.fixed.patience(t.node.orders.Drained(), t.with.Work.Grace)
	close(t.life.Closing)
	t.joiner.Close()
	timer := time.AfterFunc(exchanges, func() {
		t.life.BreakOff()
		t.conversations.BreakOff()
	})
	t.conversations.Wait()
	timer.Stop()
	t.conversations.RepairAll(repairs)
	timer.Reset(rest) // for what else is on its way
	defer timer.Stop()
	t.conversations.EndMessages(rest)
	t.life.Stop(0)
	t.life.Tasks.End()
	t.node.inbox.await(notice{ends: t.driver})
	t.life.End()
	t.steps.Close() // waits for an update that is under way
	end := done(t.node.flock, t.node.orders, t.node.Description())
	t.left.Store(&end)
	if !t.node.life.Leaving.Load() {
		t.node.arrival.Brings(nil)
		t.with.Stage.withdraw(t.node.flock)
		t.node.tenant.Store(nil)
	}
	t.tellMerged()
}

// linger serves the others until the run is over for all.
func (t *Trainer) linger() {
	const look = time.Second // between two checks for members that have died
	grace := time.NewTimer(t.with.Work.Grace)
	defer grace.Stop()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-t.node.flock.Flown():
			return
		case <-ticker.C:
			working := t.node.flock.Working()
			if t.merging() || len(working) == 0 || slices.ContainsFunc(working, func(id transport.PeerID) bool { return !t.node.arrival.Gone(t.life.Working, id) }) {
				continue
			}
			return
		case <-grace.C:
			t.log.Info("leaving although some members are still at work", zap.Duration("grace", t.with.Work.Grace))
			return
		}
	}
}

// merging tells whether the final merge is still to come (docs/design/022). From the end of
// the run on no step is applied, and from the start of the merge on only the merge changes
// the parameters.
func (t *Trainer) merging() bool { return t.steps.traits.Pools && !t.node.flock.Settled() }

// tellMerged logs, when the peer leaves, that the configured merge has not taken place.
func (t *Trainer) tellMerged() {
	if t.node.flock.IsOver() && t.merging() {
		t.log.Warn("the final merge has not come about within the time to leave: this peer keeps its own model. If links are slow or members busy, allow more time",
			zap.Duration("grace", t.with.Work.Grace))
	}
}
