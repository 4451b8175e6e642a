package peer

import (
	"cmp"
	"slices"

	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/topology"
)

// Member is what a peer knows of a member of its run from the record that the member
// signed.
type Member struct {
	ID   seam.PeerID
	Role topology.Role
	// State is what its latest digest says; without digests it is told from the record,
	// in which a member that is paused or copying looks as if it trained.
	State PeerState
	Steps uint64
	// Unreachable tells that others cannot dial it, Leaving that it is about to go.
	Unreachable, Leaving bool
}

// Members are those of the run, this one included, in the order of their ids.
func (p *Peer) Members() []Member {
	known := p.flock.records()
	members := make([]Member, 0, len(known)+1)
	members = append(members, Member{
		ID: p.Self(), Role: topology.Role(p.counters.role.Load()), State: p.State(),
		Steps: p.counters.steps.Load(), Unreachable: p.reach.unreachable.Load(), Leaving: p.isClosing(),
	})
	states := p.control.states()
	for _, r := range known {
		m := Member{
			ID: r.Peer, Role: topology.Role(r.Role), State: StateTraining, Steps: r.Steps,
			Unreachable: r.Flags&flagUnreachable != 0, Leaving: r.Flags&flagLeaving != 0,
		}
		told, heard := states[r.Peer]
		switch {
		case r.Flags&flagOver != 0:
			m.State = StateOver
		case heard:
			m.State = told
		case r.Steps == 0:
			m.State = StateJoining
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return members
}

// State is what the peer is about.
func (p *Peer) State() PeerState { return p.control.state(p.counters.over.Load()) }

// states are those that digests tell of.
func (c *control) states() map[seam.PeerID]PeerState {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := make(map[seam.PeerID]PeerState, len(c.digests))
	for id, d := range c.digests {
		told[id] = d.State
	}
	return told
}

// records are those of the members that are present, this peer's own left out.
func (f *flock) records() []seam.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	records := make([]seam.Record, 0, len(f.present))
	for _, r := range f.present {
		records = append(records, r)
	}
	return records
}
