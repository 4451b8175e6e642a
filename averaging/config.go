package averaging

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// Defaults of Config.
const (
	DefaultDeadline   = 30 * time.Second
	DefaultRetryAfter = 5 * time.Second
)

// Config sets up an ADPSGD machine. Self and Rand are required; the zero values
// of the others are useful.
type Config struct {
	// Self is the local peer.
	Self topology.PeerID
	// Every is H, the number of local steps between two exchanges that the peer
	// initiates. 0 lets the measured link and step times decide.
	Every int
	// MinEvery and MaxEvery bound H when it is chosen automatically. Default: 1
	// and DefaultMaxEvery.
	MinEvery, MaxEvery int
	// CostShare bounds the processor time of exchanges, as a share of the
	// trainer's time, when H is chosen automatically. Default: DefaultCostShare.
	CostShare float64
	// MaxInbound is how many exchanges the peer serves at once, up to MaxOverlap;
	// more weigh less each. Default: 1.
	MaxInbound int
	// Deadline bounds an exchange from proposal to end. Default: DefaultDeadline.
	Deadline time.Duration
	// RetryAfter is how long a partner that failed is passed over, unless the
	// view changes. Default: DefaultRetryAfter.
	RetryAfter time.Duration
	// Rand is where the random start of the partner cycle comes from. The machine
	// owns it.
	Rand *rand.Rand
}

func (c Config) validate() error {
	var faults []error
	if c.Self == "" {
		faults = append(faults, errors.New("Self is empty"))
	}
	if c.Rand == nil {
		faults = append(faults, errors.New("Rand is nil: give a seeded source"))
	}
	if c.Every < 0 || c.MinEvery < 0 || c.MaxEvery < 0 {
		faults = append(faults, fmt.Errorf("Every, MinEvery and MaxEvery are %d, %d and %d: none may be negative", c.Every, c.MinEvery, c.MaxEvery))
	}
	if c.MaxEvery > 0 && c.MinEvery > c.MaxEvery {
		faults = append(faults, fmt.Errorf("MinEvery %d exceeds MaxEvery %d", c.MinEvery, c.MaxEvery))
	}
	if !(c.CostShare >= 0 && c.CostShare <= 1) {
		faults = append(faults, fmt.Errorf("CostShare is %v: want a share from 0 to 1", c.CostShare))
	}
	if c.MaxInbound < 0 || c.MaxInbound > MaxOverlap {
		faults = append(faults, fmt.Errorf("MaxInbound is %d: want 0 (one) to %d, beyond which exchanges at once diverge", c.MaxInbound, MaxOverlap))
	}
	if c.Deadline < 0 || c.RetryAfter < 0 {
		faults = append(faults, fmt.Errorf("Deadline %s and RetryAfter %s: neither may be negative", c.Deadline, c.RetryAfter))
	}
	return errors.Join(faults...)
}

func (c Config) withDefaults() Config {
	c.MinEvery = max(c.MinEvery, 1)
	if c.MaxEvery == 0 {
		c.MaxEvery = max(DefaultMaxEvery, c.MinEvery)
	}
	if c.CostShare == 0 {
		c.CostShare = DefaultCostShare
	}
	c.MaxInbound = max(c.MaxInbound, 1)
	if c.Deadline == 0 {
		c.Deadline = DefaultDeadline
	}
	if c.RetryAfter == 0 {
		c.RetryAfter = DefaultRetryAfter
	}
	return c
}
