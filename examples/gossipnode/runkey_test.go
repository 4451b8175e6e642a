package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestRefusedForWantOfAKey shows that a peer without the run's key ends at once, and
// says what to do.
func TestRefusedForWantOfAKey(t *testing.T) {
	t.Parallel()
	address := clitest.Peer(t, peer.Admission{RunKey: bytes.Repeat([]byte("k"), transport.MinRunKey)})
	code, _, stderr := try("run", "--listen", settings.Loopback, "--join", address, "--steps", "10")
	if code != cli.ExitFailed || !strings.Contains(stderr, "same run key") {
		t.Errorf("run without the key: exit code %d: %s", code, stderr)
	}
}
