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
	// maxWords is how many members are asked, at most, how many steps the flock has
	// taken: one that lies is outvoted; and whether they would have this model.
	maxAnswers = 5
	// wordsTime bounds the wait for their answers.
	answersTimeout = 2 * time.Second
	// behindShare: a checkpoint is good as long as the flock has not taken more than
	// one part in so many of its steps since.
	behindShare = 10
)

// Checkpoint is what lies behind a model that a peer comes back with, in steps: its own
// age, and what the flock had done.
type Checkpoint struct {
	Steps, FlockSteps uint64
	// TellsWho: the flock knows from it who has done that.
	TellsWho bool
}

// near tells whether a checkpoint is good enough to train on from it.
func (c Checkpoint) near(flockSteps uint64) bool {
	return c.FlockSteps > 0 && (flockSteps <= c.FlockSteps || flockSteps-c.FlockSteps <= flockSteps/behindShare)
}

// JoinerConfig is a model that comes to a run, and what it needs to be brought up.
type JoinerConfig struct {
	Layout     [wire.HashSize]byte
	Replica    *replica.Replica
	Checkpoint Checkpoint
	Quarantine copying.Quarantine
}

// Joiner is how a model comes to a run: the trainer may train once it is brought up to that of the
// flock. Safe for concurrent use.
type Joiner struct {
	JoinerConfig
	phases
	*Arrival
	news  chan struct{} // capacity 1: the membership has changed
	state atomic.Pointer[stats.State]

	ctx        context.Context // ends with Close
	cancel     context.CancelFunc
	background tasks.Group     // also what the arrival does for the model
	barred     context.Context // ends when nobody will ever have this model, or this member
	bar        context.CancelCauseFunc
}

// NewJoiner prepares how a model comes to a run in which a member arrives, or has arrived.
func NewJoiner(config JoinerConfig, of *Arrival) *Joiner {
	n := &Joiner{JoinerConfig: config, phases: phases{gate: make(chan struct{})}, Arrival: of, news: make(chan struct{}, 1)}
	n.ctx, n.cancel = context.WithCancel(of.ctx)
	n.barred, n.bar = context.WithCancelCause(of.barred)
	return n
}

// Begin brings the model up where the member has arrived already, or does soon.
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

// arrived is catchUp for one that has come through a member just now. Close waits for it: the model does not
// change after that.
func (n *Joiner) arrived(through transport.PeerID, welcome wire.Welcome, from Phase, held bool) {
	done := make(chan struct{})
	if n.background.Spawn(func() {
		defer close(done)
		n.catchUp(through, welcome, from, held)
	}) {
		<-done
	}
}

// Barred is closed when nobody will have the model, or the member; Fault says then why.
func (n *Joiner) Barred() <-chan struct{} { return n.barred.Done() }

// Fault is why nobody will have the model, once Barred is closed.
func (n *Joiner) Fault() error { return context.Cause(n.barred) }

// Wait waits until the trainer may train: for joining, at most Patience if nobody answers, and for the
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

// catchUp brings a model up to a flock that has trained already, and opens the
// way to training. Who trained alone, because nobody answered in time, is a joiner too
// if its model is behind. Where the member that let this one in does not train, or is not known, one
// that does is asked.
func (n *Joiner) catchUp(through transport.PeerID, welcome wire.Welcome, from Phase, held bool) {
	idle := func(r transport.Record) bool { return r.Peer == through && !flock.Trains(r) }
	if through == "" || slices.ContainsFunc(n.Membership.Members(), idle) {
		by, welcome, err := n.meet()
		if err != nil {
			n.bar(fmt.Errorf("training in run %q: %w", n.Run, err))
			return
		}
		if by != "" {
			through, welcome = by, welcome
		}
	}
	if !held && !n.trained(welcome) {
		n.advance(Seeking, Here)
		return
	}
	if !held {
		if from, held = n.hold(); !held {
			return // training has begun and goes on, or another contact sees to it
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

// meet asks some members that train whether they would have this model, until one would. The
// zero value is nobody's; it fails if those that answer have another.
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
			refused = err // one alone may lie
		}
	}
	return "", wire.Welcome{}, refused
}

// State is how the peer came by its model, the zero value as long as there is nothing to
// say.
func (n *Joiner) State() (s stats.State) {
	if state := n.state.Load(); state != nil {
		s = *state
	}
	return s
}

// others are the records of the other members that train.
func (n *Joiner) others() []transport.Record {
	self := n.Transport.Self()
	return slices.DeleteFunc(n.Membership.Members(), func(r transport.Record) bool { return r.Peer == self || !flock.Trains(r) })
}

// trained tells whether the flock has taken steps: the member that let this peer in
// says so, or the record of any member does.
func (n *Joiner) trained(welcome wire.Welcome) bool {
	return welcome.FlockSteps > 0 || slices.ContainsFunc(n.others(), func(r transport.Record) bool { return r.Age() > 0 })
}

// behind tells whether the flock's models are so much older than this peer's, in steps,
// that a copy of theirs is worth more.
func (n *Joiner) behind(welcome wire.Welcome) bool {
	ages := []uint64{welcome.Steps}
	for _, r := range n.others() {
		ages = append(ages, r.Age())
	}
	age, own := lowerMedian(ages), n.Flock.Age()
	return age > own && age-own > age/behindShare
}

// credibleAge is the oldest that a model can be by what all members say, unbounded as long
// as nobody says anything.
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

// totals asks some members for what the flock has done. The first word is the
// welcome's.
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

// lowerMedian is the median of values, which it sorts; of an even number the lower
// of the middle two, so that one of two members that claims much moves nothing: what
// the flock has done beyond, the members' own records tell. 0 if there are none.
func lowerMedian(values []uint64) uint64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

// take gives a joiner the model with which it begins: that of its checkpoint if
// that is near, else a copy of the flock's. If nobody can give one, it begins with the
// values that it has, alone for all it knows, and says so. It is late if training has
// begun.
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

// copy copies the flock's model from several members at once, and takes over what
// they say of it: the median of their steps, and of all words on the flock's.
func (n *Joiner) copy(ctx context.Context, through transport.PeerID, answers []uint64, late bool) error {
	copied, err := copying.Copy(ctx, copying.Config{
		Run: n.Run, Layout: n.Layout, Values: n.Replica.SharedLen(), SliceLen: n.Replica.SliceLen(), Stall: n.Stall,
		Identity: n.Transport, Membership: n.Membership, News: n.news, Requests: n.Requests, Quarantine: n.Quarantine, Log: n.Log,
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
	n.Flock.SetAge(min(lowerMedian(copied.Ages), total, n.credibleAge())) // or a state server's lie would be told on in good faith
	n.Flock.Inherit(total, n.Membership.Members())
	n.Log.Info("copied the flock's model", zap.Int("donors", copied.Stats.Servers), zap.Int("values", len(copied.Values)),
		zap.Int("slices", copied.Stats.Slices), zap.Uint64("asked_again", copied.Stats.Again), zap.Duration("took", copied.Stats.Took),
		zap.Uint64("steps", n.Flock.Age()), zap.Uint64("flock_steps", total))
	n.state.Store(&copied.Stats)
	return nil
}
