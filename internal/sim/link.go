package sim

import (
	"errors"
	"fmt"
	"time"
)

// Link describes a connection between two peers, the same in both directions.
// The zero value has no delay and no limit.
type Link struct {
	// Delay is the time that a byte is under way.
	Delay time.Duration
	// Bandwidth is the bytes a second of each way, shared by all that travels that
	// way. 0 is no limit.
	Bandwidth float64
	// Loss is the probability that a segment must be sent once more, each time it
	// is sent. As with TCP, no byte is missing in the end: what follows it waits.
	Loss float64
}

// What loss costs.
const (
	// segment is the bytes that are lost together.
	segment = 1460
	// resendPause is how long a sender waits, beyond a round trip, before it takes
	// a segment for lost.
	resendPause = 20 * time.Millisecond
	// maxResends bounds how often one segment is sent again.
	maxResends = 15
)

func (l Link) validate() error {
	var faults []error
	if l.Delay < 0 {
		faults = append(faults, fmt.Errorf("Delay is %s: it may not be negative", l.Delay))
	}
	if !(l.Bandwidth >= 0) {
		faults = append(faults, fmt.Errorf("Bandwidth is %v bytes a second: want 0 for no limit, or more", l.Bandwidth))
	}
	if !(l.Loss >= 0 && l.Loss < 1) {
		faults = append(faults, fmt.Errorf("Loss is %v: want a probability below 1", l.Loss))
	}
	return errors.Join(faults...)
}

// transmission is the time that n bytes take to be handed to the link.
func (l Link) transmission(n int) time.Duration {
	if l.Bandwidth == 0 {
		return 0
	}
	return time.Duration(float64(n) / l.Bandwidth * float64(time.Second))
}

// resent draws how many segments of n bytes are sent again, and how often the
// segment that is lost most.
func (l Link) resent(n int, chance func() float64) (segments, worst int) {
	if l.Loss == 0 {
		return 0, 0
	}
	for ; n > 0; n -= segment {
		times := 0
		for times < maxResends && chance() < l.Loss {
			times++
		}
		segments += times
		worst = max(worst, times)
	}
	return segments, worst
}
