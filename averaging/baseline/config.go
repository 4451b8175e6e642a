package baseline

import (
	"cmp"
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
	// Server names the peer that coordinates, or serves the parameters; NewParamServers is given one for each part. Default:
	// the first of the view, where members that only serve come first and those that cannot be dialled last.
	Server topology.PeerID
	// ServeOnly: this peer makes no gradients. It serves before those that train do, and nobody waits for it. Used by
	// parameter servers.
	ServeOnly bool
	// Batch, if above 0, divides the flock's batch, of Batch samples per peer, among the
	// peers by their speed (see Shares). Used by AllReduce, and by ParamServer with BSP.
	Batch int
	// GlobalBatch, if above 0, is the number of samples of the whole flock in a round, however many peers there are, and at
	// least one of each; Batch is not used then. ParamServer with BSP divides it by speed, AllReduce and DPSGD evenly, where
	// what is left over goes to peers in turn. In rounds before which nobody has come or gone the parts add up to it. Of
	// the first round peers choose their parts themselves.
	GlobalBatch int
	// Topology is the shape by which AllReduce sums: Exponential (halving and doubling), Ring or
	// Tree. DPSGD averages along whatever links the view has.
	Topology topology.Shape
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
	if c.GlobalBatch < 0 || c.GlobalBatch > MaxBatch {
		faults = append(faults, fmt.Errorf("GlobalBatch is %d: want 0 (none) to %d", c.GlobalBatch, MaxBatch))
	}
	return errors.Join(faults...)
}

// flights makes the flights of a machine with this configuration.
func (c Config) flights() *collective.Flights {
	c.Deadline = cmp.Or(c.Deadline, averaging.DefaultDeadline)
	return &collective.Flights{Self: c.Self, Deadline: c.Deadline}
}
