package peer_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/topology"
)

// reached starts a peer by a name.
func reached(t *testing.T, n *memnet.Network, name string, reach peer.Reach, join ...string) *peer.Peer {
	t.Helper()
	return start(t, peer.Config{Run: "digits", Params: newModel(), Join: join, Network: peer.Network{Transport: place(t, n, name), Reach: reach}})
}

// seen is how a peer sees another.
func seen(t *testing.T, by, of *peer.Peer) control.Member {
	t.Helper()
	for _, m := range by.Members() {
		if m.ID == of.Self() {
			return m
		}
	}
	t.Fatalf("%s is no member for %s", of.Self(), by.Self())
	return control.Member{}
}

// TestRolesFollowWhatARelayFinds: a passive peer of which a relay finds that nobody can
// dial it is active from then on, and says so; another takes its place. When it is found
// that it can be dialled after all it says that too, and keeps its role.
func TestRolesFollowWhatARelayFinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		first := reached(t, n, "first", peer.FindReach)
		second := reached(t, n, "second", peer.FindReach, "mem:first")
		waitMembers(t, first, 2)
		waitMembers(t, second, 2)
		time.Sleep(5 * time.Second) // until both have their roles; which has which may follow from their ids
		if seen(t, first, first).Role != topology.Passive {
			first, second = second, first
		}
		expect := func(when string, unreachable bool, own, other topology.Role) {
			t.Helper()
			time.Sleep(5 * time.Second)
			for _, by := range []*peer.Peer{first, second} {
				if a, b := seen(t, by, first), seen(t, by, second); a.Unreachable != unreachable || a.Role != own || b.Unreachable || b.Role != other {
					t.Errorf("%s, %s sees first: %v, unreachable %t; second: %v, unreachable %t", when, by.Self(), a.Role, a.Unreachable, b.Role, b.Unreachable)
				}
			}
		}
		expect("at first", false, topology.Passive, topology.Active)
		first.FoundReachable(false)
		expect("found out", true, topology.Active, topology.Passive)
		first.FoundReachable(true)
		expect("after all", false, topology.Active, topology.Passive)
	})
}

// TestWhatAPeerIsToldWins over what a relay finds.
func TestWhatAPeerIsToldWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		for name, told := range map[string]peer.Reach{"unreachable": peer.Unreachable, "reachable": peer.Reachable} {
			p := reached(t, n, name, told)
			for _, found := range []bool{false, true, false} {
				p.FoundReachable(found)
				if got := seen(t, p, p).Unreachable; got != (told == peer.Unreachable) {
					t.Errorf("told that it is %s, and found %t: unreachable is %t", name, found, got)
				}
			}
		}
	})
	neither := peer.Config{Run: "digits", Params: newModel(), Network: peer.Network{Reach: peer.Unreachable + 1}}
	if _, err := peer.Start(t.Context(), neither); err == nil || !strings.Contains(err.Error(), "Network.Reach is 3") {
		t.Errorf("told what there is not: %v", err)
	}
}
