package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer"
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

// TestUnreachableFlag: without the flag a peer finds out, with it it does not, and it may be
// given without a value, with one, or in a file.
func TestUnreachableFlag(t *testing.T) {
	for text, want := range map[string]peer.Reach{
		unreachableAuto: {}, unreachableYes: {Unreachable: true}, unreachableNo: {Reachable: true},
	} {
		if got := (networkSettings{Unreachable: text}).reach(); got.Unreachable != want.Unreachable || got.Reachable != want.Reachable {
			t.Errorf("%s is %+v", text, got)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"", unreachableAuto}, {"--unreachable", unreachableYes}, {"--unreachable=no", unreachableNo}, {"--config=" + unreachableFile(t), unreachableYes},
	} {
		code, out, logged := try(append([]string{"config", "--json"}, strings.Fields(c.args)...)...)
		if code != cli.ExitDone || !strings.Contains(out, `"unreachable":{"value":"`+c.want+`"`) {
			t.Errorf("%q: exit code %d: %s%s", c.args, code, out, logged)
		}
	}
	if code, _, logged := try("run", "--unreachable=perhaps"); code != cli.ExitUsage || !strings.Contains(logged, "--unreachable") {
		t.Errorf("exit code %d: %s", code, logged)
	}
}

func unreachableFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "node.yaml")
	if err := os.WriteFile(file, []byte("unreachable: yes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
