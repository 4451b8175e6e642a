package arrival

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/copying"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// maxAnswers is the most members that are asked for the flock's steps, so that a single
	// liar is outvoted, and whether they accept this model.
	maxAnswers = 5
	// answersTimeout bounds the wait for their answers.
	answersTimeout = 2 * time.Second
	// behindShare: a checkpoint is recent enough if the flock has since taken at most one
	// part in behindShare of its steps.
	behindShare = 10
)

// Checkpoint is the history of the model of a peer that comes back, in steps: the peer's
// own, the age of the model, and those of the flock.
type Checkpoint struct {
	Steps, FlockSteps uint64
	// TellsWho: it says which member has taken which steps.
	TellsWho bool
}

// near tells whether a checkpoint is recent enough to train on from it.
func (c Checkpoint) near(flockSteps uint64) bool {
	return c.FlockSteps > 0 && (flockSteps <= c.FlockSteps || flockSteps-c.FlockSteps <= flockSteps/behindShare)
}

// JoinerConfig is a model that joins a run, and what is needed to bring it up to date.
type JoinerConfig struct {
	Layout     [wire.HashSize]byte
	Replica    *replica.Replica
	Checkpoint Checkpoint
	Quarantine copying.Quarantine
}

// Joiner brings a model up to that of the flock; the trainer may train once that is done. Safe for
// concurrent use.
type Joiner struct {
	JoinerConfig
	phases
	*Arrival
	news  chan struct{} // capacity 1: the membership has changed
	state atomic.Pointer[stats.State]

	ctx        context.Context // ends with Close
	cancel     context.CancelFunc
	background tasks.Group     // also the arrival's work for the model
	barred     context.Context // ends when the run will never accept this model, or this member
	bar        context.CancelCauseFunc
}

// NewJoiner prepares a joiner for a member that arrives, or has arrived, in a run.
func NewJoiner(config JoinerConfig, of *Arrival) *Joiner {
	n := &Joiner{JoinerConfig: config, phases: phases{gate: make(chan struct{})}, Arrival: of, news: make(chan struct{}, 1)}
	n.ctx, n.cancel = context.WithCancel(of.ctx)
	n.barred, n.bar = context.WithCancelCause(of.barred)
	return n
}

// Begin brings the model up to date, now if the member has arrived already, else on arrival.
func (n *Joiner) Begin() {
	n.background.Spawn(func() {
		select {
		case <-n.reached:
			n.catchUp("", wire.Welcome{}, Seeking, false)
		case <-n.ctx.Done():
		}
	})
}

// Close breaks off what is under way, and waits for it.
func (n *Joiner) Close() {
	n.cancel()
	n.background.End()
}

// arrived is catchUp for a member that has just been admitted. Close waits for it, so the model does not
// change after Close.
func (n *Joiner) arrived(through transport.PeerID, welcome wire.Welcome, from Phase, held bool) {
	done := make(chan struct{})
	if n.background.Spawn(func() {
		defer close(done)
		n.catchUp(through, welcome, from, held)
	}) {
		<-done
	}
}

// Barred is closed when the run will not accept the model, or the member; Fault then says why.
func (n *Joiner) Barred() <-chan struct{} { return n.barred.Done() }

// Fault is why the run will not accept the model, once Barred is closed.
func (n *Joiner) Fault() error { return context.Cause(n.barred) }

// Wait waits until the trainer may train: for joining, at most Timeout if nobody answers, and for the
// model. After Close the error is transport.ErrClosed.
func (n *Joiner) Wait(ctx context.Context) error {
	return n.wait(ctx, n.ctx, n.barred, n.entrance, func() bool {
		if n.advance(Seeking, Here) {
			n.alone.Store(true)
			n.Log.Warn("no member answers: training alone, and trying further", zap.Strings("join", n.Join))
		}
		return false
	})
}

// catchUp brings a model up to that of a flock that has trained already, and then lets the trainer
// train. A peer that trained alone, because nobody answered in time, also catches up if its model is
// behind. If the member that admitted this one does not train, or is not known, another that trains
// is asked. A stage that nobody else trains has nobody to copy from.
func (n *Joiner) catchUp(through transport.PeerID, welcome wire.Welcome, from Phase, held bool) {
	other := func(r transport.Record) bool { return r.Peer == through && !n.Flock.Alike(r) }
	if through == "" || slices.ContainsFunc(n.Membership.Members(), other) {
		by, answer, err := n.meet()
		if err != nil {
			n.bar(fmt.Errorf("training in run %q: %w", n.Run, err))
			return
		}
		if by != "" {
			through, welcome = by, answer
		}
	}
	if !held && !n.trained(welcome) {
		n.advance(Seeking, Here)
		return
	}
	if !held {
		if from, held = n.hold(); !held {
			return // training goes on, or another contact does it
		}
	}
	late := from == Here
	n.alone.Store(false)
	if !late || n.behind(welcome) {
		if err := n.take(n.ctx, through, welcome, late); err != nil {
			if n.ctx.Err() == nil {
				n.bar(fmt.Errorf("joining run %q: %w", n.Run, err))
			}
			return
		}
	}
	n.advance(Copying, Here)
}

// meet asks some members that train whether they accept this model, until one does. through
// is empty if none answers; meet fails if those that answer have another model.
func (n *Joiner) meet() (through transport.PeerID, welcome wire.Welcome, refused error) {
	others := n.others()
	for _, r := range others[:min(len(others), maxAnswers)] {
		ctx, cancel := context.WithTimeout(n.ctx, joinTimeout)
		welcome, err := n.Hello(ctx, r.Peer)
		cancel()
		if err == nil {
			return r.Peer, welcome, nil
		}
		if refuses, ok := errors.AsType[*transport.RefusedError](err); ok && refuses.Why == transport.ErrLayout {
			refused = err // a single one may lie
		}
	}
	return "", wire.Welcome{}, refused
}

// State is how the peer got its model; the zero value until that is known.
func (n *Joiner) State() (s stats.State) {
	if state := n.state.Load(); state != nil {
		s = *state
	}
	return s
}

// others are the records of the other members that train the same parameters.
func (n *Joiner) others() []transport.Record {
	self := n.Transport.Self()
	return slices.DeleteFunc(n.Membership.Members(), func(r transport.Record) bool { return r.Peer == self || !n.Flock.Alike(r) })
}

// trained tells whether the flock has taken steps, by the welcome or by the record of any
// member.
func (n *Joiner) trained(welcome wire.Welcome) bool {
	return welcome.FlockSteps > 0 && n.Flock.Stage() == 0 || slices.ContainsFunc(n.others(), func(r transport.Record) bool { return r.Age() > 0 })
}

// behind tells whether the flock's models have so many more steps than this peer's that a
// copy of them is better.
func (n *Joiner) behind(welcome wire.Welcome) bool {
	ages := []uint64{welcome.Steps}
	for _, r := range n.others() {
		ages = append(ages, r.Age())
	}
	age, own := lowerMedian(ages), n.Flock.Age()
	return age > own && age-own > age/behindShare
}

// credibleAge is the largest plausible age of a model by the members' records, unbounded
// while there are none.
func (n *Joiner) credibleAge() uint64 {
	var ages []uint64
	for _, r := range n.others() {
		if age := r.Age(); age > 0 {
			ages = append(ages, age)
		}
	}
	if len(ages) == 0 {
		return math.MaxUint64
	}
	return flock.Plausible(ages)
}

// totals asks some members for the flock's steps. The first answer is that of the welcome.
func (n *Joiner) totals(ctx context.Context, first transport.PeerID, welcome wire.Welcome) []uint64 {
	answers := []uint64{welcome.FlockSteps}
	others := slices.DeleteFunc(n.others(), func(r transport.Record) bool { return r.Peer == first })
	ctx, cancel := context.WithTimeout(ctx, answersTimeout)
	defer cancel()
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, r := range others[:min(len(others), maxAnswers-1)] {
		asking.Go(func() {
			answer, err := n.Hello(ctx, r.Peer)
			if err != nil {
				n.Log.Debug("a member does not tell what the flock has done", zap.String("peer", string(r.Peer)), zap.Error(err))
				return
			}
			mu.Lock()
			defer mu.Unlock()
			answers = append(answers, answer.FlockSteps)
		})
	}
	asking.Wait()
	return answers
}

// lowerMedian is the median of values, which it sorts; for an even number it is the lower
// of the middle two, so that one of two members cannot raise it. Steps beyond it are
// learned from the members' records. 0 if there are no values.
func lowerMedian(values []uint64) uint64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

// take gives a joiner its first model: that of its checkpoint if that is recent, else a
// copy of the flock's. If no member can give one, the joiner begins with its own values,
// apparently alone, and logs that. It is late if training has begun.
func (n *Joiner) take(ctx context.Context, through transport.PeerID, welcome wire.Welcome, late bool) error {
	answers := n.totals(ctx, through, welcome)
	if total := lowerMedian(slices.Clone(answers)); n.Checkpoint.near(total) {
		n.Flock.SetAge(max(n.Checkpoint.Steps, n.Flock.Age()))
		if n.Checkpoint.TellsWho {
			n.Flock.AtLeast(total)
		} else {
			n.Flock.Inherit(total, n.Membership.Members())
		}
		n.state.Store(&stats.State{Kept: true})
		n.Log.Info("training on from the checkpoint, which is near what the flock has done",
			zap.Uint64("checkpoint", n.Checkpoint.FlockSteps), zap.Uint64("flock_steps", total))
		return nil
	}
	err := n.copy(ctx, through, answers, late)
	if errors.Is(err, copying.ErrNobody) {
		n.state.Store(&stats.State{Alone: true})
		n.Log.Warn("training alone, from this peer's own values: the flock has trained, and nobody can give its model. If it is still there, restart this peer with another address to join",
			zap.Error(err))
		return nil
	}
	return err
}

// copy copies the flock's model from several members at once. It takes over the median of
// their models' ages, and the median of all answers on the flock's steps.
func (n *Joiner) copy(ctx context.Context, through transport.PeerID, answers []uint64, late bool) error {
	copied, err := copying.Copy(ctx, copying.Config{
		Run: n.Run, Layout: n.Layout, Values: n.Replica.SharedLen(), SliceLen: n.Replica.SliceLen(), Stall: n.Stall,
		Identity: n.Transport, Membership: n.Membership, Gives: n.Flock.Alike, News: n.news, Requests: n.Requests, Quarantine: n.Quarantine, Log: n.Log,
	}, through)
	if err != nil {
		return err
	}
	restore := n.Replica.RestoreShared
	if late {
		restore = n.Replica.Replace
	}
	if err := restore(copied.Values); err != nil {
		return fmt.Errorf("copying the flock's model: %w", err)
	}
	total := lowerMedian(append(answers, copied.FlockSteps...))
	n.Flock.SetAge(min(lowerMedian(copied.Ages), total, n.credibleAge())) // otherwise this peer would pass on a state server's lie
	n.Flock.Inherit(total, n.Membership.Members())
	n.Log.Info("copied the flock's model", zap.Int("donors", copied.Stats.Servers), zap.Int("values", len(copied.Values)),
		zap.Int("slices", copied.Stats.Slices), zap.Uint64("asked_again", copied.Stats.Retransmitted), zap.Duration("took", copied.Stats.Took),
		zap.Uint64("steps", n.Flock.Age()), zap.Uint64("flock_steps", total))
	n.state.Store(&copied.Stats)
	return nil
}
