package baseline

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// Config sets up a rival. Self is required; the zero values of the others are useful.
type Config struct {
	// Self is the local peer.
	Self topology.PeerID
	// Deadline is how long a round waits for others, the slowest trainer included, and how
	// long a transfer may take. A worker that exceeds it is left out; it gets the
	// parameters when it returns. Default: averaging.DefaultDeadline.
	Deadline time.Duration
	// Server names the peer that serves the parameters. Default: the first of the view.
	Server topology.PeerID
	// Batch, if above 0, divides the flock's batch, of Batch samples per peer, among the
	// peers by their speed (see Shares). Used by AllReduce, and by ParamServer with BSP.
	Batch int
}

func (c Config) validate() error {
	var faults []error
	if c.Self == "" {
		faults = append(faults, errors.New("Self is empty"))
	}
	if c.Deadline < 0 {
		faults = append(faults, fmt.Errorf("Deadline is %s: it may not be negative", c.Deadline))
	}
	if c.Batch < 0 || c.Batch > MaxBatch {
		faults = append(faults, fmt.Errorf("Batch is %d: want 0 (not divided) to %d", c.Batch, MaxBatch))
	}
	return errors.Join(faults...)
}

// flights makes the flights of a machine with this configuration.
func (c Config) flights() *collective.Flights {
	if c.Deadline == 0 {
		c.Deadline = averaging.DefaultDeadline
	}
	return &collective.Flights{Self: c.Self, Deadline: c.Deadline}
}
