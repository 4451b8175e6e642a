package links

import (
	"context"
	"errors"
	"time"
)

// A partner that is cut off or frozen says nothing, and gossip takes seconds to call
// it dead. How long to wait for it follows from how long it has made this peer wait
// while all was well, on whichever side of an exchange: that holds what the round trip
// and the rate of the link, the slices' size and the machines at both ends come to.
// docs/design/018 says why.

const (
	// leastPatience is the shortest bound of the wait for a frame: long enough for a
	// process that is short of processor time, and less than 3 s with what a transport
	// may add to a deadline.
	leastTimeout = 2500 * time.Millisecond
	// leastOpening is the shortest bound of the wait for the first sign of a partner that
	// was accepted, whose place nobody else has meanwhile. One that is not measured yet, or
	// was late, has that and twice as long the next time.
	leastOpening = time.Second
	// slack is how many times longer than before a wait, or an exchange, may last.
	slack = 4
	// tempoDecay is what is left of the longest wait after another exchange.
	tempoDecay = 0.8
	// maxLate bounds how often a partner's time is doubled because it was too short.
	maxLate = 4
)

// ErrLate: an exchange that moved on, but too slowly.
var ErrLate = errors.New("the exchange took several times longer than those with this partner before, and was given up")

// Waits is what an exchange has shown of how long a partner makes this peer wait.
type Waits struct {
	Longest time.Duration // for a frame
	Opening time.Duration // of this, from the answer to a proposal to the partner's first sign
	Took    time.Duration // the exchange
}

// tempo is how long one partner makes this peer wait, at most.
type tempo struct {
	waits Waits
	late  int // exchanges in a row that ran out of time
}

// timeout bounds the wait for the partner's next frame; most is the bound of all.
func (k tempo) timeout(most time.Duration) time.Duration {
	return min(k.base()<<k.late, most)
}

// opening bounds the wait for the first sign of a partner that was accepted: a few of the
// round trips that it took before.
func (k tempo) opening(most time.Duration) time.Duration {
	return min(max(leastOpening, slack*k.waits.Opening)<<k.late, k.timeout(most))
}

// base bounds the wait for a frame where the last exchange did not run out of time.
func (k tempo) base() time.Duration { return max(leastTimeout, slack*k.waits.Longest) }

// budget bounds an exchange; most is the bound of all, and what one gets with a partner
// with which none has been completed.
func (k tempo) budget(most time.Duration) time.Duration {
	if k.waits.Took == 0 {
		return most
	}
	return min((k.base()+slack*k.waits.Took)<<k.late, most)
}

// ended takes what an exchange that is over has shown.
func (k *tempo) ended(w Waits, err error) {
	switch {
	case err == nil:
		before := k.waits
		*k = tempo{waits: Waits{faded(before.Longest, w.Longest), faded(before.Opening, w.Opening), faded(before.Took, w.Took)}}
	case RanOut(err):
		k.late = min(k.late+1, maxLate)
	}
}

// faded is the longer of a sample and what is left of those before.
func faded(before, sample time.Duration) time.Duration {
	return max(sample, time.Duration(tempoDecay*float64(before)))
}

// RanOut tells whether an exchange failed because time was up, and might do with more.
func RanOut(err error) bool {
	if errors.Is(err, ErrLate) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && timeout.Timeout()
}
