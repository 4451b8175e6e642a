package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/swim"
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
		keys, err := networkSettings{GossipKey: file}.gossipKeys()
		switch {
		case wrong == "":
			if err != nil || len(keys) == 0 || !bytes.Equal(keys[0], bytes.Repeat([]byte{0x0a}, 32)) {
				t.Errorf("%d keys, error %v", len(keys), err)
			}
		case err == nil || !strings.Contains(err.Error(), wrong) || strings.Contains(err.Error(), "secret"):
			t.Errorf("%d bytes: error %v, want one that has %q", len(text), err, wrong)
		}
	}
	if _, err := (networkSettings{GossipKey: file + ".no"}).gossipKeys(); err == nil {
		t.Error("a file that does not exist")
	}
}

func TestMembershipFlag(t *testing.T) {
	for text, want := range map[string]swim.Carrier{carrierAuto: swim.Auto, carrierStreams: swim.Streams, carrierDatagrams: swim.Datagrams} {
		if got := (networkSettings{Membership: text}).gossip().Carrier; got != want {
			t.Errorf("%s is %d, want %d", text, got, want)
		}
	}
	if code, _, logged := try("run", "--membership", "pigeons"); code != cli.ExitUsage || !strings.Contains(logged, "membership") {
		t.Errorf("exit code %d: %s", code, logged)
	}
}

// TestLocalByDatagrams shows processes that find each other by encrypted datagrams.
func TestLocalByDatagrams(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "gossip.key")
	if err := os.WriteFile(file, []byte(strings.Repeat("0a", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, logged bytes.Buffer
	cmd := command(t, localArgs(pictures(t, 400, 200), "--peers", "4", "--steps", "200", "--every", "10", "--membership", carrierDatagrams, "--gossip-key", file)...)
	cmd.Stdout, cmd.Stderr = &out, &logged
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &logged)
	}
	if r := lastLine(t, out.String()); r.Peers != 4 || r.JoinSeconds == 0 || r.Exchanges == 0 || r.Failed != 0 {
		t.Errorf("%+v", r)
	}
}
