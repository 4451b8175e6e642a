package peer

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
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

// trained tells whether the flock has taken steps: the member that let this peer in
// says so, or the record of any member does.
func (p *Peer) trained(welcome wire.Welcome) bool {
	return welcome.FlockSteps > 0 || slices.ContainsFunc(p.membership.Members(), func(m seam.Record) bool {
		return m.Peer != p.Self() && plus(m.Head, m.Steps) > 0
	})
}

// words asks some members for what the flock has done. The first word is the
// welcome's.
func (p *Peer) words(first seam.PeerID, welcome wire.Welcome) []uint64 {
	words := []uint64{welcome.FlockSteps}
	var others []seam.PeerID
	for _, m := range p.membership.Members() {
		if m.Peer != p.Self() && m.Peer != first && len(others) < maxWords-1 {
			others = append(others, m.Peer)
		}
	}
	ctx, cancel := context.WithTimeout(p.exchanges, wordsTime)
	defer cancel()
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, id := range others {
		asking.Go(func() {
			answer, err := p.hello(ctx, id)
			if err != nil {
				p.log.Debug("a member does not tell what the flock has done", zap.String("peer", string(id)), zap.Error(err))
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

// recordOf is the life that a member's record tells, and the steps behind its model;
// zeros if there is no record.
func (f *flock) recordOf(id seam.PeerID) (life, age uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.present[id]
	return m.Incarnation, plus(m.Head, m.Steps)
}

// near tells whether a checkpoint is good enough to train on from it.
func (c Checkpoint) near(flockSteps uint64) bool {
	return c.FlockSteps > 0 && (flockSteps <= c.FlockSteps || flockSteps-c.FlockSteps <= flockSteps/behindShare)
}

// behind tells whether the flock's models are so much older than this peer's, in steps,
// that a copy of theirs is worth more.
func (p *Peer) behind(welcome wire.Welcome) bool {
	ages := []uint64{welcome.Steps}
	for _, m := range p.membership.Members() {
		if m.Peer != p.Self() {
			ages = append(ages, plus(m.Head, m.Steps))
		}
	}
	age, own := lowerMedian(ages), p.age()
	return age > own && age-own > age/behindShare
}

// credibleAge is the oldest that a model can be by what all members say, unbounded as long
// as nobody says anything.
func (p *Peer) credibleAge() uint64 {
	var ages []uint64
	for _, m := range p.membership.Members() {
		if age := plus(m.Head, m.Steps); m.Peer != p.Self() && age > 0 {
			ages = append(ages, age)
		}
	}
	if len(ages) == 0 {
		return math.MaxUint64
	}
	return believable(ages)
}

// settleIn gives a newcomer the model with which it begins: that of its checkpoint if
// that is near, else a copy of the flock's. If nobody can give one, it begins with the
// values that it has, alone for all it knows, and says so.
func (p *Peer) settleIn(seed seam.PeerID, words []uint64, late bool) error {
	checkpoint := p.config.Network.State.Checkpoint
	if total := lowerMedian(slices.Clone(words)); checkpoint.near(total) {
		p.ageTo(max(checkpoint.Steps, p.age()))
		if checkpoint.tellsWho() {
			p.flock.atLeast(total, p.counters.resumed) // who has done it, the checkpoint knows
		} else {
			p.flock.inherit(total, 0, p.Self(), p.membership.Members())
		}
		p.copied.Store(&StateStats{Kept: true})
		p.log.Info("training on from the checkpoint, which is near what the flock has done",
			zap.Uint64("checkpoint", checkpoint.FlockSteps), zap.Uint64("flock_steps", total))
		return nil
	}
	err := p.copyModel(seed, words, late)
	if errors.Is(err, errNobody) {
		p.copied.Store(&StateStats{Alone: true})
		p.log.Warn("training alone, from this peer's own values: the flock has trained, and nobody can give its model. If it is still there, restart this peer with another --join",
			zap.Error(err))
		return nil
	}
	return err
}

// report fills in what there is to say of copies.
func (p *Peer) stateStats() StateStats {
	var s StateStats
	if copied := p.copied.Load(); copied != nil {
		s = *copied
	}
	s.Newcomers, s.Given = p.giving.places.count(), p.giving.slices.Load()
	return s
}
