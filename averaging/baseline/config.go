package baseline

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// Defaults and bounds of Config.
const (
	// DefaultDeadline is how long a peer that is silent is waited for.
	DefaultDeadline = 30 * time.Second
	// MaxParts bounds Config.Parts.
	MaxParts = 64
	// MaxModelWeight bounds Config.Weight: that of a sum over every member fits in a
	// message.
	MaxModelWeight = 1 << 30
	// perDeadline is how many times, at least, a waiting peer speaks before its deadline.
	perDeadline = 8
	// minSlice and maxSlice bound how often a waiting peer speaks, however long its
	// deadline is: words that are lost should cost no more than that.
	minSlice, maxSlice = time.Millisecond, time.Second
)

// Config sets up a rival. Self is required; the zero values of the others are useful.
type Config struct {
	// Self is the local peer.
	Self topology.PeerID
	// Deadline is how long others are waited for in a round, the slowest trainer
	// included, and how long one transfer may go without an end. A peer that exceeds it
	// is left behind; it takes the parameters when it comes again. Default:
	// DefaultDeadline.
	Deadline time.Duration
	// Parts is how many transfers carry what one peer has for another, so that the end
	// of one overlaps with the beginning of the next. Peers' may differ: in a ring the
	// leader's counts. Default: 1.
	Parts int
	// Server names the peer that serves the parameters. Default: one is elected.
	Server topology.PeerID
	// Batch, if above 0, divides the flock's batch, which is so many samples for each of
	// its peers, among them by their speed (see Shares). Heeded by AllReduce, and by
	// ParamServer with BSP.
	Batch int
	// Weight is what this peer's model counts in a Merge, 0 (as 1) to MaxModelWeight: the
	// number of its samples, for one. The others' may differ.
	Weight float64
}

func (c Config) validate() error {
	var faults []error
	if c.Self == "" {
		faults = append(faults, errors.New("Self is empty"))
	}
	if c.Deadline < 0 {
		faults = append(faults, fmt.Errorf("Deadline is %s: it may not be negative", c.Deadline))
	}
	if c.Parts < 0 || c.Parts > MaxParts {
		faults = append(faults, fmt.Errorf("Parts is %d: want 0 (one) to %d", c.Parts, MaxParts))
	}
	if c.Batch < 0 || c.Batch > MaxBatch {
		faults = append(faults, fmt.Errorf("Batch is %d: want 0 (not divided) to %d", c.Batch, MaxBatch))
	}
	if c.Weight != 0 && !(c.Weight >= 1 && c.Weight <= MaxModelWeight) {
		faults = append(faults, fmt.Errorf("Weight is %g: want 0 (as 1), or 1 to %d", c.Weight, MaxModelWeight))
	}
	return errors.Join(faults...)
}

func (c Config) withDefaults() Config {
	if c.Deadline == 0 {
		c.Deadline = DefaultDeadline
	}
	c.Parts = max(c.Parts, 1)
	return c
}

// slice is how long a waiting peer waits before it speaks again.
func (c Config) slice() time.Duration { return min(max(c.Deadline/perDeadline, minSlice), maxSlice) }
