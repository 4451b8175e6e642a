package links

import (
	"context"
	"errors"
	"time"
)

// A partner that is cut off or frozen is silent, and gossip takes seconds to call it dead.
// The timeout follows from how long the partner made this peer wait in successful
// exchanges, on either side: that includes the round trip and the rate of the link, the
// slices' size and the speed of both machines. docs/design/018 gives the reasons.

const (
	// leastTimeout is the shortest bound of the wait for a frame: long enough for a
	// process that is short of processor time, and less than 3 s with what a transport
	// may add to a deadline.
	leastTimeout = 2500 * time.Millisecond
	// leastOpening is the shortest bound of the wait for the first frame of a partner whose
	// proposal was accepted; its place is blocked for others meanwhile. A partner that is
	// not measured yet, or was late, gets this time, and twice as long the next time.
	leastOpening = time.Second
	// slack is how many times longer than before a wait, or an exchange, may last.
	slack = 4
	// tempoDecay is what is left of the longest wait after another exchange.
	tempoDecay = 0.8
	// maxLate bounds how often a partner's time is doubled because it was too short.
	maxLate = 4
)

// ErrLate: an exchange made progress, but too slowly.
var ErrLate = errors.New("the exchange took several times longer than those with this partner before, and was given up")

// Waits is how long this peer waited for a partner in one exchange.
type Waits struct {
	Longest time.Duration // for a frame
	Opening time.Duration // of this, from the answer to a proposal to the partner's first frame
	Took    time.Duration // the exchange
}

// tempo is how long this peer has waited for one partner, at most.
type tempo struct {
	waits Waits
	late  int // exchanges in a row that ran out of time
}

// timeout bounds the wait for the partner's next frame; most is the upper bound.
func (k tempo) timeout(most time.Duration) time.Duration {
	return min(k.base()<<k.late, most)
}

// opening bounds the wait for the first frame of a partner whose proposal was accepted: a
// few times the longest such wait before.
func (k tempo) opening(most time.Duration) time.Duration {
	return min(max(leastOpening, slack*k.waits.Opening)<<k.late, k.timeout(most))
}

// base bounds the wait for a frame if the last exchange did not run out of time.
func (k tempo) base() time.Duration { return max(leastTimeout, slack*k.waits.Longest) }

// budget bounds an exchange; most is the upper bound, and the value until an exchange with
// the partner has completed.
func (k tempo) budget(most time.Duration) time.Duration {
	if k.waits.Took == 0 {
		return most
	}
	return min((k.base()+slack*k.waits.Took)<<k.late, most)
}

// ended takes the waits of an exchange that has ended.
func (k *tempo) ended(w Waits, err error) {
	switch {
	case err == nil:
		before := k.waits
		*k = tempo{waits: Waits{faded(before.Longest, w.Longest), faded(before.Opening, w.Opening), faded(before.Took, w.Took)}}
	case RanOut(err):
		k.late = min(k.late+1, maxLate)
	}
}

// faded is the longer of a sample and the decayed maximum of earlier ones.
func faded(before, sample time.Duration) time.Duration {
	return max(sample, time.Duration(tempoDecay*float64(before)))
}

// RanOut tells whether an exchange failed because of a timeout, and might succeed with more time.
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
