package train

import "time"

// clock has the times of events in the life of a peer.
type clock struct {
	started  time.Time     // when the peer started
	first    time.Time     // when the first step began
	begun    float64       // progress of the flock at first, 0 to 1
	reported time.Time     // when progress was last reported
	joined   time.Duration // from started until the peer had joined
	foretold bool          // whether it was told if the deadline can be kept
}

// elapsed is the time since the first step.
func (c clock) elapsed() time.Duration {
	if c.first.IsZero() {
		return 0
	}
	return time.Since(c.first)
}
