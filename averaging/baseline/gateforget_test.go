package baseline

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
)

func drivenServer(t *testing.T, config Config) (*driven, *ParamServer) {
	t.Helper()
	m, err := NewParamServer(config, ASP{})
	if err != nil {
		t.Fatal(err)
	}
	return &driven{t: t, machine: m}, m
}

// A worker that leaves takes its grants with it, one by one and all with the server.
func TestWhoLeavesLosesItsGrants(t *testing.T) {
	gate := dssp(1, 8)
	m, err := NewParamServer(Config{Self: "a", Server: "a"}, gate)
	if err != nil {
		t.Fatal(err)
	}
	d := &driven{t: t, machine: m}
	d.view("a", "b", "c")
	d.handle(collective.Event{Event: averaging.Event{Kind: collective.GradientDone}, Samples: 1})
	granted := func(want int, when string) {
		t.Helper()
		if len(gate.granted) != want {
			t.Errorf("%s: grants %v, want %d", when, gate.granted, want)
		}
	}
	gate.granted["b"], gate.granted["c"] = 3, 3
	d.handle(collective.Event{Event: averaging.Event{Kind: averaging.PeerLost, Peer: "b"}})
	granted(1, "without b")
	m.clear()
	granted(0, "without a server")
}
