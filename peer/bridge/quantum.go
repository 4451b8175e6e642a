package bridge

import (
	"math"
	"time"

	"github.com/seed-97356399/murmuration/internal/ewma"
	"github.com/seed-97356399/murmuration/peer"
)

// quantum is how many steps the trainer should take until its next commit, so that commits
// take at most one part in commitShare of its time.
type quantum struct {
	step, commit ewma.Mean // seconds
}

const (
	commitShare = 20
	// quantumWeight is how much the latest commit counts: about the last five do.
	quantumWeight = 0.2
)

// committed notes a commit: what it took, and how long the trainer had worked before, for so many
// steps.
func (q *quantum) committed(steps int, worked, took time.Duration) {
	if steps > 0 {
		q.step.Add(worked.Seconds()/float64(steps), quantumWeight)
		q.commit.Add(took.Seconds(), quantumWeight)
	}
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
