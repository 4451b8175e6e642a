package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/topology"
)

// Defaults of Config.
const (
	defaultStall       = 10 * time.Second
	defaultSettleAfter = time.Second
	defaultCrash       = 5 * time.Second
	defaultGossip      = 200 * time.Millisecond
)

// Config makes a world. Members, Task, Terms.Plan and Rand are required.
type Config struct {
	// Members are the peers. Elsewhere a peer is its index here.
	Members []Member
	// Topology is the shape of their overlay.
	Topology topology.Shape
	// Task is what the peers compute, and Pace what is reported of it to their machines.
	Task Task
	Pace averaging.Pace
	// Link joins every pair of peers, until World.SetLink says otherwise.
	Link Link
	// Port bounds the bytes a second that a peer sends, and those that it receives,
	// over all its links together, until World.SetPort says otherwise. 0 is no bound.
	Port float64
	// Sites says where the network has bottlenecks.
	Sites Sites
	// Terms are those of every exchange: the plan and the window. The other fields
	// are filled in for each.
	Terms replica.Terms
	// Pipeline, if not nil, cuts the model into stages.
	Pipeline *Pipeline
	// Stall is how long a peer waits for a partner's next frame at most; package links says
	// how long. Default: 10 s.
	Stall time.Duration
	// Deadline bounds an exchange whatever the machine says. Default:
	// averaging.DefaultDeadline.
	Deadline time.Duration
	// Quarantine is how long a peer that breaks the rules is kept away at most. Default: as
	// package links says. Where it is the network that alters frames, nobody lies.
	Quarantine time.Duration
	// SettleAfter is how long a peer waits before it asks a partner for the outcome
	// of a broken exchange by itself, and the least time between two attempts.
	// Default: 1 s.
	SettleAfter time.Duration
	// Ends, if not nil, is the soonest time at which the machine of a peer hears that the peer's n-th exchange, from 1, has
	// ended, if it began that: for what keeps peers busy beside the link.
	Ends func(peer, n int) time.Duration
	// News says how soon the others learn of peers that come and go.
	News News
	// Hooks let the caller watch and interfere.
	Hooks Hooks
	// Rand is where the losses of links come from. The world owns it.
	Rand *rand.Rand
}

// Sites parts the peers of a world. The zero value has them all at one site.
type Sites struct {
	// Of is the site of each peer, from 0. What peers tell of it is in Member.Place.
	Of []int
	// Across joins peers of different sites: its delay and loss take the place of those of their link. Its bandwidth is
	// that of a site's uplink: all peers there together send no more to other sites, and receive no more.
	Across Link
}

// apart tells whether two peers are at different sites.
func (s Sites) apart(a, b int) bool { return len(s.Of) > 0 && s.Of[a] != s.Of[b] }

// between is the link of two peers that at one site would be link.
func (s Sites) between(a, b int, link Link) Link {
	if s.apart(a, b) {
		link.Delay, link.Loss = s.Across.Delay, s.Across.Loss
	}
	return link
}

func (s Sites) validate(peers int) error {
	if n := len(s.Of); n > 0 && n != peers {
		return fmt.Errorf("Sites.Of has %d peers of %d", n, peers)
	}
	return s.Across.validate()
}

// News says how long the other peers take to detect a crash, and to learn that a
// peer has come or left. Default: 5 s and 200 ms.
type News struct{ Crash, Gossip time.Duration }

// Member is one peer of a world; the world takes over all its parts. A peer that
// comes Later, with World.Arrive, has only an ID until then. An Unreachable one, in
// the sense of topology.Member, can only be active. A Stranger is in the world but in
// no view: it sees no members, and no member knows it.
type Member struct {
	ID          topology.PeerID
	Role        topology.Role // at the beginning; Undecided lets the view decide
	Machine     averaging.Machine
	Replica     *replica.Replica
	Ledger      *replica.Ledger
	Optimizer   optim.Optimizer
	Later       bool
	Unreachable bool
	Stranger    bool
	Place       topology.Place
	// Stage is the one that it holds, from 0, in a Pipeline.
	Stage int
}

func (m Member) validate(index int) error {
	if m.Machine == nil || m.Replica == nil || m.Ledger == nil || m.Optimizer == nil {
		return fmt.Errorf("member %d (%q): Machine, Replica, Ledger and Optimizer are all needed", index, m.ID)
	}
	return nil
}

// Hooks are called as things happen; any may be nil. They may not block or touch
// a replica that takes part in an exchange, other than by adding to it.
type Hooks struct {
	// Opened: a stream has been opened and nothing was written to it yet.
	Opened func(*Stream)
	// Finished: a peer has completed an exchange; each side does so by itself.
	Finished func(peer, partner int, inbound bool)
	// Lost: so many segments had to be sent again on the link between two peers.
	Lost func(a, b, segments int)
	// Broke: an exchange broke off at a peer, or a question about one, or a proposal
	// was refused for another reason than that the partner is busy.
	Broke func(peer, partner int, err error)
	// Quarantined: a peer keeps a partner away for what it did.
	Quarantined func(peer, partner int, err error)
	// Proposed: a peer's machine asks for an exchange with a partner, or a transfer.
	Proposed func(peer int, partner topology.PeerID)
	// Failed: a step of a peer cannot be made, and it makes no more.
	Failed func(peer int, err error)
}

func (c Config) validate() error {
	var faults []error
	if len(c.Members) == 0 {
		faults = append(faults, errors.New("no Members"))
	}
	for i, m := range c.Members {
		if err := m.validate(i); err != nil && !m.Later {
			faults = append(faults, err)
		}
	}
	if c.Task == nil {
		faults = append(faults, errors.New("Task is nil"))
	}
	if c.Stall < 0 || c.SettleAfter < 0 {
		faults = append(faults, fmt.Errorf("Stall %s and SettleAfter %s: neither may be negative", c.Stall, c.SettleAfter))
	}
	if c.Rand == nil {
		faults = append(faults, errors.New("Rand is nil: give a seeded source"))
	}
	if c.News.Crash < 0 || c.News.Gossip < 0 {
		faults = append(faults, fmt.Errorf("News.Crash %s and News.Gossip %s: neither may be negative", c.News.Crash, c.News.Gossip))
	}
	if err := (Link{Bandwidth: c.Port}).validate(); err != nil {
		faults = append(faults, fmt.Errorf("Port: %w", err))
	}
	return errors.Join(append(faults, c.Pipeline.validate(c), c.Link.validate(), c.Sites.validate(len(c.Members)))...)
}

func (c Config) withDefaults() Config {
	c.Stall, c.Deadline = cmp.Or(c.Stall, defaultStall), cmp.Or(c.Deadline, averaging.DefaultDeadline)
	c.News.Crash, c.News.Gossip = cmp.Or(c.News.Crash, defaultCrash), cmp.Or(c.News.Gossip, defaultGossip)
	c.SettleAfter = cmp.Or(c.SettleAfter, defaultSettleAfter)
	return c
}
