package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/topology"
)

// Defaults of Config.
const (
	DefaultStall       = 10 * time.Second
	DefaultSettleAfter = time.Second
)

// Config makes a world. Members, Trainer, Terms.Plan and Rand are required.
type Config struct {
	// Members are the peers. Elsewhere a peer is its index here.
	Members []Member
	// Trainer says what the peers compute.
	Trainer Trainer
	// Link joins every pair of peers, until World.SetLink says otherwise.
	Link Link
	// Terms are those of every exchange: the plan and the window. The other fields
	// are filled in for each.
	Terms replica.Terms
	// Stall is how long a peer waits for a partner's next frame. Default:
	// DefaultStall.
	Stall time.Duration
	// SettleAfter is how long a peer waits before it asks a partner for the outcome
	// of a broken exchange by itself, and the least time between two attempts.
	// Default: DefaultSettleAfter.
	SettleAfter time.Duration
	// Hooks let the caller watch and interfere.
	Hooks Hooks
	// Rand is where the losses of links come from. The world owns it.
	Rand *rand.Rand
}

// Member is one peer of a world, which takes over all that it consists of.
type Member struct {
	ID      topology.PeerID
	Machine averaging.Machine
	Replica *replica.Replica
	Ledger  *replica.Ledger
}

// Hooks are called as things happen; any may be nil. They may not block or touch
// a replica that takes part in an exchange, other than by adding to it.
type Hooks struct {
	// Opened: a stream has been opened and nothing was written to it yet.
	Opened func(*Stream)
	// Finished: a peer has completed an exchange; each side does so by itself.
	Finished func(peer, partner int, inbound bool)
	// Broke: an exchange broke off at a peer, or a question about one, or a proposal
	// was refused for another reason than that the partner is busy.
	Broke func(peer, partner int, err error)
}

func (c Config) validate() error {
	var faults []error
	if len(c.Members) == 0 {
		faults = append(faults, errors.New("no Members"))
	}
	for i, m := range c.Members {
		if m.Machine == nil || m.Replica == nil || m.Ledger == nil {
			faults = append(faults, fmt.Errorf("member %d (%q): Machine, Replica and Ledger are all needed", i, m.ID))
		}
	}
	if c.Trainer == nil {
		faults = append(faults, errors.New("Trainer is nil"))
	}
	if len(c.Terms.Plan.Codecs()) == 0 {
		faults = append(faults, errors.New("Terms.Plan has no codec"))
	}
	if c.Stall < 0 || c.SettleAfter < 0 {
		faults = append(faults, fmt.Errorf("Stall %s and SettleAfter %s: neither may be negative", c.Stall, c.SettleAfter))
	}
	if c.Rand == nil {
		faults = append(faults, errors.New("Rand is nil: give a seeded source"))
	}
	return errors.Join(append(faults, c.Link.validate())...)
}

func (c Config) withDefaults() Config {
	if c.Stall == 0 {
		c.Stall = DefaultStall
	}
	if c.SettleAfter == 0 {
		c.SettleAfter = DefaultSettleAfter
	}
	return c
}
