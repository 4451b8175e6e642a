package bridge

import (
	"math"
	"time"

	"github.com/seed-97356399/murmuration/internal/ewma"
	"github.com/seed-97356399/murmuration/peer"
)

// commitInterval is how many steps the trainer should take until its next commit, so that commits cost at
// most a twentieth of its time. The bridge can measure half of that cost: refilling the trainer's processor
// caches costs about as much again (4 % of a step of a perceptron with a commit after twelve). Between
// commits the trainer gets nothing from other peers and they get nothing from it: so the interval grows
// slowly, and one commit that a stall delayed changes it little.
type commitInterval struct {
	step, commit ewma.Mean // seconds
	before       time.Duration
	now          int // the interval away from the end of the run; 0 stands for 1
}

const (
	commitShare = 2 * 20
	// quantumWeight is how much the latest commit counts: about the last five do.
	quantumWeight = 0.2
	// quantumOutlier is how many times the mean a commit counts at most. Steps count as they are: slow
	// ones make the quantum small, which costs some commits, while one that stayed large would cost minutes.
	quantumOutlier = 4
	// quantumGrowth is how many times the one before a quantum is at most.
	quantumGrowth = 2
	// quantumWork is the longest work between two commits, unless it is less than leastWork commits take:
	// else a trainer with a very large model did little but commit.
	quantumWork = time.Second
	leastWork   = 9
)

// committed notes a commit: how long it took, and how long the trainer had worked before, for how
// many steps. spent is how long the commit before took the trainer, copies and transport included,
// of which q.before was in the bridge; 0 if the trainer does not say.
func (q *commitInterval) committed(steps int, worked, took, spent time.Duration) {
	away := min(max(spent-q.before, 0), worked) // time of the commit outside of the bridge, which is no work either
	q.before = took
	if steps <= 0 {
		return
	}
	latest := (took + away).Seconds()
	if mean := q.commit.Value(); mean > 0 {
		latest = min(latest, quantumOutlier*mean)
	}
	q.commit.Add(latest, quantumWeight)
	q.step.Add((worked-away).Seconds()/float64(steps), quantumWeight)
	step, commit := max(q.step.Value(), 1e-9), q.commit.Value()
	work := min((commitShare-1)*commit, max(quantumWork.Seconds(), leastWork*commit))
	wanted := math.Round(work / step)
	q.now = int(min(max(wanted, 1), float64(quantumGrowth*max(q.now, 1)), peer.MaxTraded))
}

// steps is the interval in steps. left are the steps that the flock still has to do, 0 if the
// run has no end: near the end members commit more often, so that all know how much is done.
func (q *commitInterval) steps(left uint64, members int) int {
	now := max(q.now, 1)
	if left > 0 {
		now = int(min(uint64(now), max(1, left/uint64(max(1, members)))))
	}
	return now
}
