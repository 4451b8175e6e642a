package settings

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/swim"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestGossipKeyFile: the first key encrypts, others decrypt; what is no key is named
// by its line, and never shown.
func TestGossipKeyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gossip.key")
	key, other := strings.Repeat("0a", 32), strings.Repeat("b0", 32)
	for text, wrong := range map[string]string{
		key: "", "# old\n" + key + "\n\n" + other + "\n": "", "": "no key", key + "\nsecret": "line 2", key[1:]: "line 1",
		strings.Repeat("#", maxGossipKeyFile+1): "bytes",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		keys, err := Network{GossipKey: file}.gossipKeys()
		switch {
		case wrong == "":
			if err != nil || len(keys) == 0 || !bytes.Equal(keys[0], bytes.Repeat([]byte{0x0a}, 32)) {
				t.Errorf("%d keys, error %v", len(keys), err)
			}
		case err == nil || !strings.Contains(err.Error(), wrong) || strings.Contains(err.Error(), "secret"):
			t.Errorf("%d bytes: error %v, want one that has %q", len(text), err, wrong)
		}
	}
	if _, err := (Network{GossipKey: file + ".no"}).gossipKeys(); err == nil {
		t.Error("a file that does not exist")
	}
}

// TestRemedyWhereNobodyAnswers names the usual mistakes, but not to who is told of another already.
func TestRemedyWhereNobodyAnswers(t *testing.T) {
	if got := Remedy(fmt.Errorf("joining: %w", transport.ErrUnreachable)); !strings.Contains(got, "--listen, not of --metrics") {
		t.Errorf("where nobody answers: %q", got)
	}
	if got := Remedy(fmt.Errorf("joining: %w", &p2pnet.WrongIdentityError{})); got != "" {
		t.Errorf("where another answers: %q", got)
	}
}

func TestMembershipFlag(t *testing.T) {
	for text, want := range map[string]swim.Carrier{CarrierAuto: swim.Auto, carrierStreams: swim.Streams, carrierDatagrams: swim.Datagrams} {
		if got := (Network{Membership: text}).Carrier(); got != want {
			t.Errorf("%s is %d, want %d", text, got, want)
		}
	}
	if code, _, logged := try("run", "--membership", "pigeons"); code != cli.ExitUsage || !strings.Contains(logged, "membership") {
		t.Errorf("exit code %d: %s", code, logged)
	}
}

// TestRelayFlags: a relay is named by address and id, and a member behind one can be
// joined.
func TestRelayFlags(t *testing.T) {
	relay := "/ip4/192.0.2.7/tcp/4001/p2p/" + PeerIDPrefix + "abc"
	if !isMultiaddr(relay + "/p2p-circuit/p2p/" + PeerIDPrefix + "def") {
		t.Error("an address behind a relay is refused")
	}
	for _, wrong := range []string{relay + "/p2p-circuit", "/ip4/192.0.2.7/tcp/4001/p2p-circuit/p2p/" + PeerIDPrefix, relay + "/p2p-circuit/p2p/x"} {
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
	s := Network{Relay: []string{relay}, RelayService: true, HolePunch: true}.Relays()
	if len(s.Via) != 1 || !s.Serve || !s.Punch {
		t.Errorf("%+v", s)
	}
}

// TestUnreachableFlag: without the flag a peer finds out, with it it does not, and it may be
// given without a value, with one, or in a file.
func TestUnreachableFlag(t *testing.T) {
	for text, want := range map[string]peer.Reach{
		UnreachableAuto: peer.FindReach, UnreachableYes: peer.Unreachable, unreachableNo: peer.Reachable,
	} {
		if got := (Network{Unreachable: text}).Reach(); got != want {
			t.Errorf("%s is %d", text, got)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"", UnreachableAuto}, {"--unreachable", UnreachableYes}, {"--unreachable=no", unreachableNo}, {"--config=" + unreachableFile(t), UnreachableYes},
	} {
		if s, err := parse(t, "", nil, strings.Fields(c.args)...); err != nil || s.Unreachable != c.want {
			t.Errorf("%q: %q, %v", c.args, s.Unreachable, err)
		}
	}
	if code, _, logged := try("run", "--unreachable=perhaps"); code != cli.ExitUsage || !strings.Contains(logged, "--unreachable") {
		t.Errorf("exit code %d: %s", code, logged)
	}
}

// TestLanesFlag: a number of lanes that package peer would refuse is refused by the flag's
// name, whether it is given as a flag or in a file.
func TestLanesFlag(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node.yaml")
	if err := os.WriteFile(file, []byte("lanes: 9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run", "--lanes", "-1"}, {"run", "--lanes", "9"}, {"run", "--config", file}, {"run", "--lanes", "two"}} {
		if code, _, logged := try(args...); code != cli.ExitUsage || !strings.Contains(logged, "lanes") {
			t.Errorf("%q: exit code %d: %s", args, code, logged)
		}
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

// TestAdmission shows that the files of --allow and --run-key say who may take part.
func TestAdmission(t *testing.T) {
	key := bytes.Repeat([]byte("k"), transport.MinRunKey)
	path := clitest.WriteFile(t, "run.key", string(key)+"\n")
	a, err := Network{RunKey: path, Allow: "list"}.Admission(zap.NewNop())
	if err != nil || !bytes.Equal(a.RunKey, key) || a.Allow != "list" {
		t.Errorf("admission %+v, %v", a, err)
	}
}
