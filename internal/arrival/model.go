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
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/peer/stats"
)

const (
	// maxWords is how many members are asked, at most, how many steps the flock has
	// taken: one that lies is outvoted.
	maxWords = 5
	// wordsTime bounds the wait for their answers.
	wordsTime = 2 * time.Second
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

// model is how a newcomer comes by the model with which it begins.
type model struct {
	Config
	news chan struct{} // capacity 1: the membership has changed
	told atomic.Pointer[stats.State]
}

// State is how the peer came by its model, the zero value as long as there is nothing to
// say.
func (m *model) State() (s stats.State) {
	if told := m.told.Load(); told != nil {
		s = *told
	}
	return s
}

// MembersChanged tells a copy under way that there may be members that it does not know.
func (m *model) MembersChanged() {
	select {
	case m.news <- struct{}{}:
	default:
	}
}

// others are the records of the other members.
func (m *model) others() []seam.Record {
	self := m.Transport.Self()
	return slices.DeleteFunc(m.Membership.Members(), func(r seam.Record) bool { return r.Peer == self })
}

// trained tells whether the flock has taken steps: the member that let this peer in
// says so, or the record of any member does.
func (m *model) trained(welcome wire.Welcome) bool {
	return welcome.FlockSteps > 0 || slices.ContainsFunc(m.others(), func(r seam.Record) bool { return r.Age() > 0 })
}

// behind tells whether the flock's models are so much older than this peer's, in steps,
// that a copy of theirs is worth more.
func (m *model) behind(welcome wire.Welcome) bool {
	ages := []uint64{welcome.Steps}
	for _, r := range m.others() {
		ages = append(ages, r.Age())
	}
	age, own := lowerMedian(ages), m.Flock.Age()
	return age > own && age-own > age/behindShare
}

// credibleAge is the oldest that a model can be by what all members say, unbounded as long
// as nobody says anything.
func (m *model) credibleAge() uint64 {
	var ages []uint64
	for _, r := range m.others() {
		if age := r.Age(); age > 0 {
			ages = append(ages, age)
		}
	}
	if len(ages) == 0 {
		return math.MaxUint64
	}
	return flock.Believable(ages)
}

// words asks some members for what the flock has done. The first word is the
// welcome's.
func (m *model) words(ctx context.Context, first seam.PeerID, welcome wire.Welcome) []uint64 {
	words := []uint64{welcome.FlockSteps}
	others := slices.DeleteFunc(m.others(), func(r seam.Record) bool { return r.Peer == first })
	ctx, cancel := context.WithTimeout(ctx, wordsTime)
	defer cancel()
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, r := range others[:min(len(others), maxWords-1)] {
		asking.Go(func() {
			answer, err := m.Hello(ctx, r.Peer)
			if err != nil {
				m.Log.Debug("a member does not tell what the flock has done", zap.String("peer", string(r.Peer)), zap.Error(err))
				return
			}
			mu.Lock()
			defer mu.Unlock()
			words = append(words, answer.FlockSteps)
		})
	}
	asking.Wait()
	return words
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

// take gives a newcomer the model with which it begins: that of its checkpoint if
// that is near, else a copy of the flock's. If nobody can give one, it begins with the
// values that it has, alone for all it knows, and says so. It is late if training has
// begun.
func (m *model) take(ctx context.Context, through seam.PeerID, welcome wire.Welcome, late bool) error {
	words := m.words(ctx, through, welcome)
	if total := lowerMedian(slices.Clone(words)); m.Checkpoint.near(total) {
		m.Flock.SetAge(max(m.Checkpoint.Steps, m.Flock.Age()))
		if m.Checkpoint.TellsWho {
			m.Flock.AtLeast(total)
		} else {
			m.Flock.Inherit(total, m.Membership.Members())
		}
		m.told.Store(&stats.State{Kept: true})
		m.Log.Info("training on from the checkpoint, which is near what the flock has done",
			zap.Uint64("checkpoint", m.Checkpoint.FlockSteps), zap.Uint64("flock_steps", total))
		return nil
	}
	err := m.copy(ctx, through, words, late)
	if errors.Is(err, copying.ErrNobody) {
		m.told.Store(&stats.State{Alone: true})
		m.Log.Warn("training alone, from this peer's own values: the flock has trained, and nobody can give its model. If it is still there, restart this peer with another address to join",
			zap.Error(err))
		return nil
	}
	return err
}

// copy copies the flock's model from several members at once, and takes over what
// they say of it: the median of their steps, and of all words on the flock's.
func (m *model) copy(ctx context.Context, through seam.PeerID, words []uint64, late bool) error {
	copied, err := copying.Copy(ctx, copying.Config{
		Run: m.Run, Layout: m.Layout, Values: m.Replica.SharedLen(), SliceLen: m.Replica.SliceLen(), Stall: m.Stall,
		Identity: m.Transport, Members: m.Membership.Members, News: m.news, Converse: m.Converse,
		Avoided: func(id seam.PeerID) bool { return m.Quarantined(id) > 0 }, Condemn: m.Condemn, Log: m.Log,
	}, through)
	if err != nil {
		return err
	}
	restore := m.Replica.RestoreShared
	if late {
		restore = m.Replica.Replace
	}
	if err := restore(copied.Values); err != nil {
		return fmt.Errorf("copying the flock's model: %w", err)
	}
	total := lowerMedian(append(words, copied.FlockSteps...))
	m.Flock.SetAge(min(lowerMedian(copied.Ages), total, m.credibleAge())) // or a donor's lie would be told on in good faith
	m.Flock.Inherit(total, m.Membership.Members())
	m.Log.Info("copied the flock's model", zap.Int("donors", copied.Stats.Donors), zap.Int("values", len(copied.Values)),
		zap.Int("slices", copied.Stats.Slices), zap.Uint64("asked_again", copied.Stats.Again), zap.Duration("took", copied.Stats.Took),
		zap.Uint64("steps", m.Flock.Age()), zap.Uint64("flock_steps", total))
	m.told.Store(&copied.Stats)
	return nil
}
