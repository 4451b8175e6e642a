package memnet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// registry is what a run's members know together: news of it reaches everybody
// who can be reached at once.
type registry struct {
	mu      sync.Mutex
	members map[transport.PeerID]*Membership
	highest map[transport.PeerID]uint64 // incarnation, of those who left as well
	last    map[transport.PeerID]transport.Record
}

// Membership implements transport.Membership on a table that the members of a run
// share: a member sees those it has joined, directly or through others, that are
// on the network and not across a cut link. Changes show at once, without the
// delay of a failure detector; package swim on this network has that.
type Membership struct {
	transport *Transport
	run       string
	registry  *registry
	changed   chan struct{}

	// The registry's lock guards the rest.
	record    transport.Record
	announced bool
	joined    map[transport.PeerID]struct{} // by either side
	closed    bool
}

var _ transport.Membership = (*Membership)(nil)

// signal tells every member to look again. The lock is held.
func (r *registry) signal() {
	for _, m := range r.members {
		select {
		case m.changed <- struct{}{}:
		default:
		}
	}
}

// Members implements transport.Members.
func (m *Membership) Members() []transport.Record {
	m.registry.mu.Lock()
	defer m.registry.mu.Unlock()
	var records []transport.Record
	for _, other := range m.registry.members {
		if other.announced && m.sees(other) {
			record := other.record
			record.Addresses = slices.Clone(record.Addresses)
			records = append(records, record)
		}
	}
	return records
}

// sees tells whether another member, or m itself, is joined with m, running and
// not across a cut link. The registry's lock is held.
func (m *Membership) sees(other *Membership) bool {
	if m.closed || m.transport.isStopped() || other.transport.isStopped() {
		return false
	}
	if other == m {
		return true
	}
	self, peer := m.transport.Self(), other.transport.Self()
	_, forth := m.joined[peer]
	_, back := other.joined[self]
	return forth && back && !m.transport.net.cable(self, peer).isCut()
}

// Changed implements transport.Members.
func (m *Membership) Changed() <-chan struct{} { return m.changed }

// Signed implements transport.Courier: here all hear of a change at once, so no record passes
// from hand to hand.
func (m *Membership) Signed() []byte { return nil }

// Received implements transport.Courier.
func (m *Membership) Received(transport.PeerID, []byte) (news bool, err error) { return false, nil }

// Compare implements transport.Courier.
func (m *Membership) Compare(context.Context, transport.PeerID) error { return nil }

// Refused implements transport.Membership: nothing is refused.
func (m *Membership) Refused() map[string]uint64 { return nil }

// Last implements transport.Members: the last record that a peer has announced.
func (m *Membership) Last(peer transport.PeerID) (transport.Record, bool) {
	m.registry.mu.Lock()
	defer m.registry.mu.Unlock()
	record, ok := m.registry.last[peer]
	record.Addresses = slices.Clone(record.Addresses)
	return record, ok
}

// Join implements transport.Membership. Each peer is asked for a connection, which
// takes a round trip; across a cut link it fails when the context ends.
func (m *Membership) Join(ctx context.Context, peers ...transport.PeerID) error {
	var faults []error
	for _, peer := range peers {
		if err := m.join(ctx, peer); err != nil {
			faults = append(faults, fmt.Errorf("memnet: join %s: %w", peer.Short(), err))
		}
	}
	if len(faults) < len(peers) {
		return nil
	}
	return errors.Join(faults...)
}

func (m *Membership) join(ctx context.Context, peer transport.PeerID) error {
	remote := m.transport.net.lookup(peer)
	if remote == nil {
		return transport.ErrUnreachable
	}
	if _, err := m.transport.Connect(ctx, addressPrefix+remote.name); err != nil {
		return err
	}
	r := m.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	other := r.members[peer]
	switch {
	case m.closed:
		return transport.ErrClosed
	case other == nil || other.transport != remote:
		return transport.ErrUnknownRun
	}
	r.unite(m.circle(), other.circle())
	r.signal()
	return nil
}

// circle is the member and all it has joined. The registry's lock is held.
func (m *Membership) circle() []*Membership {
	circle := []*Membership{m}
	for peer := range m.joined {
		other := m.registry.members[peer]
		if other == nil {
			continue
		}
		if _, both := other.joined[m.transport.Self()]; both {
			circle = append(circle, other)
		}
	}
	return circle
}

// unite joins everybody in one circle with everybody in another, as gossip
// would. The lock is held.
func (r *registry) unite(some, others []*Membership) {
	for _, a := range some {
		for _, b := range others {
			if a != b {
				a.joined[b.transport.Self()] = struct{}{}
				b.joined[a.transport.Self()] = struct{}{}
			}
		}
	}
}

// Announce implements transport.Membership. A record of an earlier incarnation than
// the run has seen of this peer is refused.
func (m *Membership) Announce(record transport.Record) error {
	r := m.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.closed {
		return fmt.Errorf("memnet: announce: %w", transport.ErrClosed)
	}
	record.Sequence = m.record.Sequence + 1
	if err := m.check(record); err != nil {
		return fmt.Errorf("memnet: announce: %w", err)
	}
	record.Addresses = slices.Clone(record.Addresses)
	m.record, m.announced = record, true
	r.highest[record.Peer], r.last[record.Peer] = record.Incarnation, record
	r.signal()
	return nil
}

// check is what every other member would do with the record, but for the
// signature: a record that never leaves the process carries none.
func (m *Membership) check(record transport.Record) error {
	if record.Peer != m.transport.Self() || record.Run != m.run {
		return fmt.Errorf("the record is of peer %s in run %q, not of the local one in run %q", record.Peer.Short(), record.Run, m.run)
	}
	if len(record.Addresses) > transport.MaxAddresses {
		return fmt.Errorf("%d addresses, at most %d are allowed", len(record.Addresses), transport.MaxAddresses)
	}
	for _, address := range record.Addresses {
		if err := transport.CheckAddress(address); err != nil {
			return err
		}
	}
	if record.Incarnation > transport.MaxIncarnation {
		return fmt.Errorf("incarnation %d is beyond %d, which no peer reaches", record.Incarnation, uint64(transport.MaxIncarnation))
	}
	highest, known := m.registry.highest[record.Peer]
	if record.Incarnation < highest || known && !m.announced && record.Incarnation == highest {
		return &transport.OldIncarnationError{Announced: record.Incarnation, Highest: highest}
	}
	return nil
}

// Close implements transport.Membership.
func (m *Membership) Close() error {
	r := m.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	self := m.transport.Self()
	if r.members[self] == m {
		delete(r.members, self)
		for _, other := range r.members {
			delete(other.joined, self)
		}
	}
	r.signal()
	return nil
}
