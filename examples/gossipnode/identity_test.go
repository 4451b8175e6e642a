package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer"
)

// TestIdentitiesAreRemembered shows that what a peer learns of others is kept beside its
// identity, wherever that is.
func TestIdentitiesAreRemembered(t *testing.T) {
	for _, c := range []struct{ key, checkpoint, want string }{
		{"", "", ""}, {"a.key", "", "a.key.known"}, {"a.key", "kept", "a.key.known"}, {"", "kept", filepath.Join("kept", "node.key"+".known")},
	} {
		var s settings.Settings
		s.Key, s.Checkpoint = c.key, c.checkpoint
		if got := s.KnownPeers(); got != c.want {
			t.Errorf("--key %q --checkpoint %q: %q, want %q", c.key, c.checkpoint, got, c.want)
		}
	}
	data, folder := clitest.Pictures(t, 400, 200), filepath.Join(t.TempDir(), "kept")
	address := "127.0.0.1:" + strings.Split(clitest.Peer(t, peer.Admission{}), "/")[4]
	code, _, logged := try(runArgs(data, folder, "--steps", "20", "--join", address)...)
	text, err := os.ReadFile(filepath.Join(folder, "node.key"+keys.KnownSuffix))
	if code != cli.ExitDone && !strings.Contains(logged, "layout") || err != nil || !strings.Contains(string(text), address) {
		t.Errorf("exit code %d, remembered %q (%v)\n%s", code, text, err, logged)
	}
	if strings.Contains(logged, "cannot remember") {
		t.Errorf("it wanted to remember before its folder was there:\n%s", logged)
	}
}
