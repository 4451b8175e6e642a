package main

import (
	"bytes"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// TestLocalByLanes: two processes that are given lanes have several connections with each
// other, and one if they are given none.
func TestLocalByLanes(t *testing.T) {
	t.Parallel()
	data := clitest.Pictures(t, 400, 200)
	for lanes, want := range map[string]struct{ least, most int }{"1": {1, 1}, "3": {2, 3}} { // the others may have done all the work of an exchange before the last lane comes
		var out, logged bytes.Buffer
		cmd := command(t, "local", "--dataset", "mnist", "--data", data, "--model", "mlp", "--batch", "100", "--lr", "0.01", "--every", "5",
			"--peers", "2", "--steps", "200", "--lanes", lanes, "--json")
		cmd.Stdout, cmd.Stderr = &out, &logged
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v\n%s", err, &logged)
		}
		if r := lastLine(t, out.String()); r.ConnectionsMax < want.least || r.ConnectionsMax > want.most || r.Exchanges == 0 {
			t.Errorf("with %s lanes: %d connections at most, want %d; %d exchanges", lanes, r.ConnectionsMax, want.least, r.Exchanges)
		}
	}
}
