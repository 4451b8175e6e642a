package memnet

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// names lists who a member sees, by the transports' names.
func names(m *Membership, peers []*Transport) string {
	var seen []string
	for _, r := range m.Members() {
		for _, p := range peers {
			if p.Self() == r.Peer {
				seen = append(seen, p.name)
			}
		}
	}
	slices.Sort(seen)
	return strings.Join(seen, "")
}

func newMember(t *testing.T, n *Network, p *Transport, incarnation uint64) *Membership {
	t.Helper()
	m, err := n.Membership(p, testRun)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	if err := m.Announce(transport.Record{Peer: p.Self(), Run: testRun, Incarnation: incarnation, Addresses: p.Addresses()}); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMembership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Config{})
		peers := newPeers(t, n, "a", "b", "c", "d")
		var members []*Membership
		for _, p := range peers {
			members = append(members, newMember(t, n, p, 1))
		}
		expect := func(when string, want ...string) {
			t.Helper()
			for i, m := range members {
				if got := names(m, peers); got != want[i] {
					t.Errorf("%s: %s sees %q, want %q", when, peers[i].name, got, want[i])
				}
			}
		}
		join := func(m *Membership, p *Transport) {
			t.Helper()
			if err := m.Join(t.Context(), p.Self()); err != nil {
				t.Fatal(err)
			}
		}
		expect("alone", "a", "b", "c", "d")
		join(members[1], peers[0])
		join(members[2], peers[1])
		join(members[3], peers[0])
		expect("joined in a chain", "abcd", "abcd", "abcd", "abcd")

		n.Partition([]transport.PeerID{peers[0].Self(), peers[1].Self()}, []transport.PeerID{peers[2].Self(), peers[3].Self()})
		expect("partition", "ab", "ab", "cd", "cd")
		if err := members[0].Join(t.Context(), peers[2].Self()); !errors.Is(err, transport.ErrUnreachable) {
			t.Errorf("join across the partition: %v", err)
		}
		if err := members[0].Join(t.Context(), peers[2].Self(), peers[1].Self()); err != nil {
			t.Errorf("join of one who answers and one who does not: %v", err)
		}
		n.HealAll()
		expect("healed", "abcd", "abcd", "abcd", "abcd")

		n.Crash(peers[3].Self())
		expect("crash", "abc", "abc", "abc", "")
		peers[3] = newPeers(t, n, "d")[0]
		if last, ok := members[0].Last(peers[3].Self()); last.Incarnation != 1 || !ok {
			t.Errorf("last record %+v, %v, want one of incarnation 1", last, ok)
		}
		members[3] = newMember(t, n, peers[3], 2)
		expect("restart", "abc", "abc", "abc", "d")
		join(members[3], peers[2])
		expect("rejoin", "abcd", "abcd", "abcd", "abcd")

		members[1].Close()
		members[1].Close()
		expect("leave", "acd", "", "acd", "acd")
	})
}

func TestMembershipSignalsChanges(t *testing.T) {
	n := New(Config{})
	peers := newPeers(t, n, "a", "b")
	a, b := newMember(t, n, peers[0], 1), newMember(t, n, peers[1], 1)
	quiet := func() {
		for len(a.Changed()) > 0 {
			<-a.Changed()
		}
	}
	for _, change := range []struct {
		name string
		make func()
	}{
		{"join", func() { b.Join(t.Context(), peers[0].Self()) }},
		{"announce", func() { b.Announce(transport.Record{Peer: peers[1].Self(), Run: testRun, Incarnation: 1, Steps: 7}) }},
		{"cut", func() { n.Cut(peers[0].Self(), peers[1].Self()) }},
		{"heal", n.HealAll},
	} {
		quiet()
		change.make()
		change.make()
		if len(a.Changed()) != 1 {
			t.Errorf("%s: %d signals, want 1", change.name, len(a.Changed()))
		}
	}
	seen := a.Members()
	i := slices.IndexFunc(seen, func(r transport.Record) bool { return r.Peer == peers[1].Self() })
	if i < 0 {
		t.Fatal("the other member is not seen")
	}
	if r := seen[i]; r.Steps != 7 || r.Sequence != 3 {
		t.Errorf("sees %+v, want the third record with 7 steps", r)
	}
}

func TestMembershipRefuses(t *testing.T) {
	n := New(Config{})
	peers := newPeers(t, n, "a", "b")
	m := newMember(t, n, peers[0], 5)
	good := transport.Record{Peer: peers[0].Self(), Run: testRun, Incarnation: 5}
	for name, spoil := range map[string]func(*transport.Record){
		"other peer":     func(r *transport.Record) { r.Peer = peers[1].Self() },
		"other run":      func(r *transport.Record) { r.Run = "other" },
		"earlier life":   func(r *transport.Record) { r.Incarnation = 4 },
		"many addresses": func(r *transport.Record) { r.Addresses = make([]string, transport.MaxAddresses+1) },
		"long address":   func(r *transport.Record) { r.Addresses = []string{strings.Repeat("x", transport.MaxAddressSize+1)} },
	} {
		bad := good
		spoil(&bad)
		if err := m.Announce(bad); err == nil {
			t.Errorf("%s was announced", name)
		}
	}
	if err := m.Join(t.Context(), peers[1].Self()); !errors.Is(err, transport.ErrUnknownRun) {
		t.Errorf("join of a peer outside the run: %v", err)
	}
	if _, err := n.Membership(peers[0], testRun); err == nil {
		t.Error("a peer took part twice")
	}
	m.Close()
	if err := m.Announce(good); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("announce after close: %v", err)
	}
}
