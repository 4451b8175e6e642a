package merge

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// MaxWeight bounds Config.Weight: that of a sum over every member fits in a message.
const MaxWeight = 1 << 30

// Config sets up a merge. Self is required, except in a peer's configuration, where the peer sets it.
type Config struct {
	// Self is the local peer.
	Self topology.PeerID
	// Deadline is how long the merge waits for members that have not finished the run, or
	// are silent. Default: averaging.DefaultDeadline.
	Deadline time.Duration
	// Weight is the weight of this peer's model, for example its number of samples: up to
	// MaxWeight; 0 counts as 1. Other peers may have other weights.
	Weight float64
}

func (c Config) faults() (faults []error) {
	if c.Self == "" {
		faults = append(faults, errors.New("Self is empty"))
	}
	if c.Deadline < 0 {
		faults = append(faults, fmt.Errorf("Deadline is %s: it may not be negative", c.Deadline))
	}
	if c.Weight != 0 && !(c.Weight >= 1 && c.Weight <= MaxWeight) {
		faults = append(faults, fmt.Errorf("Weight is %g: want 0 (as 1), or 1 to %d", c.Weight, MaxWeight))
	}
	return faults
}
