package bridge

import (
	"math"
	"time"

	"github.com/seed-97356399/murmuration/internal/ewma"
	"github.com/seed-97356399/murmuration/peer"
)

// quantum is how many steps the trainer should take until its next commit, so that commits
// cost at most a twentieth of its time. Half of that is what can be measured: what they push out of the
// trainer's caches costs it about as much again (4 % of a step of a perceptron with a commit after twelve).
type quantum struct {
	step, commit ewma.Mean // seconds
	before       time.Duration
}

const (
	commitShare = 2 * 20
	// quantumWeight is how much the latest commit counts: about the last five do.
	quantumWeight = 0.2
)

// committed notes a commit: what it took, and how long the trainer had worked before, for so many
// steps. spent is what the one before took the trainer in all, copies and the way included, of which
// before was here; 0 if it does not tell.
func (q *quantum) committed(steps int, worked, took, spent time.Duration) {
	if steps > 0 {
		away := min(max(spent-q.before, 0), worked) // outside of the bridge, and no work either
		q.step.Add((worked-away).Seconds()/float64(steps), quantumWeight)
		q.commit.Add((took + away).Seconds(), quantumWeight)
	}
	q.before = took
}

// steps is that number. left are the steps that the flock has to do, 0 if it has no end: towards
// the end each member commits in time for all to know how much is done.
func (q *quantum) steps(left uint64, members int) int {
	most := uint64(peer.MaxTraded)
	if left > 0 {
		most = min(most, max(1, left/uint64(max(1, members))))
	}
	if !q.step.Known() {
		return 1
	}
	step := max(q.step.Value(), 1e-9)
	wanted := math.Ceil((commitShare - 1) * q.commit.Value() / step)
	return int(min(max(wanted, 1), float64(most)))
}
