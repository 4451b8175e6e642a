package pipeline

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// usual is how large errors of the next stage are, so that a member there that sends much larger ones, which would spoil a
// whole step or make it fail, is not believed. Safe for concurrent use.
type usual struct {
	mu    sync.Mutex
	first []float64 // the squares of the first errors, in order of size
	mean  float64   // of the squares
	peak  float64   // the largest mean so far
	// doubted are members whose errors made a step fail.
	doubted map[transport.PeerID]doubt
}

// doubt is until when a member is not believed, and how often that was so.
type doubt struct {
	until time.Duration
	times int
}

func newUsual() usual { return usual{doubted: map[transport.PeerID]doubt{}} }

const (
	// learnedFrom is how many errors are looked at until their mean counts: it begins with their median, which one liar among
	// several members does not move. After medianFrom of them it is asked already. memory is how many count in the mean, about.
	learnedFrom = 8
	medianFrom  = 3
	memory      = 64
	// mostTimes is how many times as large as usual errors may be, and mostLoss bounds a loss.
	mostTimes = 100
	mostLoss  = 1e6
	// mostFall is how far below its largest what is usual can fall: a model that has learned all but a few examples has tiny
	// errors, and then those of a hard one.
	mostFall = 10
	// mostWeight is how many times as much as usual one square counts in the mean, refused ones too: so liars raise it only if
	// they are half of those who answer, and it is never so small for ever that honest errors are refused.
	mostWeight = 2
	// doubtFor is for how long a member is not believed the first time, since it may only have passed on what a liar behind it
	// sent, and maxDoubts how often that doubles. Once maxDoubted members are remembered, those whose time is over are not.
	doubtFor   = time.Second
	maxDoubts  = 8
	maxDoubted = 64
)

// check refuses what cannot be, and whatever comes from a member that is not believed.
func (u *usual) check(from transport.PeerID, now time.Duration, loss float64, errors tensor.Vector) error {
	square := tensor.SumSquares(errors) / float64(max(len(errors), 1))
	u.mu.Lock()
	defer u.mu.Unlock()
	if now < u.doubted[from].until {
		return fmt.Errorf("its errors made a step fail, so it is not believed yet: %w", wire.ErrMessage)
	}
	u.peak = max(u.peak, u.mean)
	is, known := max(u.mean, u.peak/(mostFall*mostFall)), len(u.first) >= medianFrom
	u.learn(square)
	if math.Abs(loss) > mostLoss || known && is > 0 && square > is*mostTimes*mostTimes {
		return fmt.Errorf("a loss of %g, and errors of %g where %g is usual: %w", loss, math.Sqrt(square), math.Sqrt(is), wire.ErrMessage)
	}
	return nil
}

// forget begins anew, once what was accepted has turned out not to be usual. Who sent the largest of it is not believed for a
// while, longer each time.
func (u *usual) forget(worst transport.PeerID, now time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.first, u.mean, u.peak = nil, 0, 0
	if worst == "" {
		return
	}
	full := len(u.doubted) >= maxDoubted
	maps.DeleteFunc(u.doubted, func(_ transport.PeerID, d doubt) bool { return full && d.until <= now })
	d := u.doubted[worst]
	u.doubted[worst] = doubt{until: now + doubtFor<<min(d.times, maxDoubts), times: d.times + 1}
}

// learn takes one more square into account. The lock is held.
func (u *usual) learn(square float64) {
	if len(u.first) == learnedFrom {
		u.mean += (min(square, mostWeight*u.mean) - u.mean) / memory
		return
	}
	at, _ := slices.BinarySearch(u.first, square)
	u.first = slices.Insert(u.first, at, square)
	u.mean = u.first[(len(u.first)-1)/2]
}
