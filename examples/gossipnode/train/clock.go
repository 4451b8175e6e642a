package train

import "time"

// clock is when a peer has done what.
type clock struct {
	started  time.Time // the peer
	first    time.Time // the first step began
	begun    float64   // how far the flock was then
	reported time.Time // progress was last reported
	joined   time.Duration
}

// elapsed is the time since the first step.
func (c clock) elapsed() time.Duration {
	if c.first.IsZero() {
		return 0
	}
	return time.Since(c.first)
}
