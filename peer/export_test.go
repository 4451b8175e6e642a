package peer

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// Kept counts what a peer remembers of others.
func (p *Peer) Kept() map[string]int {
	kept := map[string]int{}
	kept["present members"] = len(p.flock.Records())
	past, _ := p.flock.Past()
	departed := map[transport.PeerID]bool{}
	for _, life := range past {
		departed[life.Peer] = !p.flock.Here(life.Peer)
	}
	for _, gone := range departed {
		if gone {
			kept["departed members"]++
		}
	}
	kept["links"] = len(p.links.Measured())
	kept["sessions"], kept["exchanges under way"], kept["repairs"] = p.conversations.Kept()
	return kept
}

// KeptAtMost is the bound of what Kept counts.
func KeptAtMost(what string) int {
	return map[string]int{"departed members": flock.MaxDeparted, "links": links.MaxPartners}[what]
}

// Cut is how a peer cuts its model: the digest, and the length of a slice.
func (p *Peer) Cut() (digest uint64, sliceLen int) { return p.replica.Cut(), p.replica.SliceLen() }

// FoundReachable is what the transport calls.
func (p *Peer) FoundReachable(reachable bool) { p.foundReachable(reachable) }

// Behind is what a Checkpoint says.
type (
	Behind = behind
	Past   = past
)

// CheckpointWith is a checkpoint that says this, and Said what one says.
func CheckpointWith(b Behind) Checkpoint { return Checkpoint{b} }
func (c Checkpoint) Said() Behind        { return c.is }

// Saved are the parts of what Save copies.
type Saved struct {
	Params     tensor.Vector
	Optimizer  optim.State
	Checkpoint Checkpoint
}

// SaveAll is Save into parts that are made for it.
func (t *Trainer) SaveAll(s *Saved) (err error) {
	if s.Params == nil {
		s.Params = make(tensor.Vector, t.replica.Len())
	}
	s.Checkpoint, err = t.Save(s.Params, &s.Optimizer)
	return err
}

// Stall is how long a node waits for a frame.
const Stall = stall

// SetStall has a node wait for another time than stall.
func (n *Network) SetStall(d time.Duration) { n.fixed.stall = d }

// Digests are the members that have told any.
func (n *Node) Digests() []control.Member {
	return slices.DeleteFunc(n.Members(), func(m control.Member) bool { return m.Received.IsZero() })
}
