package main

import (
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestRelayFlags: a relay is named by address and id, and a member behind one can be
// joined.
func TestRelayFlags(t *testing.T) {
	relay := "/ip4/192.0.2.7/tcp/4001/p2p/" + peerIDPrefix + "abc"
	if !isMultiaddr(relay + "/p2p-circuit/p2p/" + peerIDPrefix + "def") {
		t.Error("an address behind a relay is refused")
	}
	for _, wrong := range []string{relay + "/p2p-circuit", "/ip4/192.0.2.7/tcp/4001/p2p-circuit/p2p/" + peerIDPrefix, relay + "/p2p-circuit/p2p/x"} {
		if isMultiaddr(wrong) {
			t.Errorf("%s is taken", wrong)
		}
	}
	for _, args := range [][]string{{"192.0.2.7:4001"}, {"/ip4/192.0.2.7/tcp/4001"}, {relay, relay, relay}} {
		all := []string{"run"}
		for _, address := range args {
			all = append(all, "--relay", address)
		}
		if code, _, logged := try(all...); code != cli.ExitUsage || !strings.Contains(logged, "--relay") {
			t.Errorf("%q: exit code %d: %s", args, code, logged)
		}
	}
	s := networkSettings{Relay: []string{relay}, RelayService: true, HolePunch: true}.reach().Relay
	if len(s.Via) != 1 || !s.Serve || !s.Punch {
		t.Errorf("%+v", s)
	}
}
