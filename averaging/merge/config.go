package merge

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// MaxWeight bounds Config.Weight: that of a sum over every member fits in a message.
const MaxWeight = 1 << 30

// Config sets up a merge. Self is required, but of a peer, which knows its own.
type Config struct {
	// Self is the local peer.
	Self topology.PeerID
	// Deadline is how long those are waited for who are not done with the run, or silent.
	// Default: averaging.DefaultDeadline.
	Deadline time.Duration
	// Weight is what this peer's model counts, 0 (as 1) to MaxWeight: the number of its
	// samples, for one. The others' may differ.
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
