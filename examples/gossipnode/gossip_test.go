package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// TestLocalByDatagrams shows processes that find each other by encrypted datagrams.
func TestLocalByDatagrams(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "gossip.key")
	if err := os.WriteFile(file, []byte(strings.Repeat("0a", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, logged bytes.Buffer
	cmd := command(t, localArgs(clitest.Pictures(t, 400, 200), "--peers", "4", "--steps", "200", "--every", "10", "--membership", "datagrams", "--gossip-key", file)...)
	cmd.Stdout, cmd.Stderr = &out, &logged
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &logged)
	}
	if r := lastLine(t, out.String()); r.Peers != 4 || r.JoinSeconds == 0 || r.Exchanges == 0 || r.Failed != 0 {
		t.Errorf("%+v", r)
	}
}
