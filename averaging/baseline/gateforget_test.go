package baseline

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
)

// A worker that leaves takes its grants with it, one by one and all with the server.
func TestWhoLeavesLosesItsGrants(t *testing.T) {
	gate := dssp(1, 8)
	m, err := NewParamServer(Config{Self: "a", Server: "a"}, gate)
	if err != nil {
		t.Fatal(err)
	}
	d := &driven{t: t, machine: m}
	d.view("a", "b", "c")
	d.handle(averaging.Event{Kind: averaging.GradientDone, Samples: 1})
	granted := func(want int, when string) {
		t.Helper()
		if len(gate.granted) != want {
			t.Errorf("%s: grants %v, want %d", when, gate.granted, want)
		}
	}
	gate.granted["b"], gate.granted["c"] = 3, 3
	d.handle(averaging.Event{Kind: averaging.PeerLost, Peer: "b"})
	granted(1, "without b")
	m.retire()
	granted(0, "without a server")
}
