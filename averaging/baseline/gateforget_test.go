package baseline

import (
	"fmt"
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
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
	m, err := NewParamServer(Config{Self: "a", Server: "a"}, dssp(1, 8))
	if err != nil {
		t.Fatal(err)
	}
	d := &driven{t: t, machine: m}
	d.view("a", "b", "c")
	d.handle(collective.Event{Event: averaging.Event{Kind: collective.GradientDone}, Samples: 1})
	granted := func(want int, when string) {
		t.Helper()
		grants := 0
		for _, w := range m.board.workers {
			if w.granted > 0 {
				grants++
			}
		}
		if grants != want {
			t.Errorf("%s: %d grants, want %d", when, grants, want)
		}
	}
	m.board.of("b").granted, m.board.of("c").granted = 3, 3
	d.handle(collective.Event{Event: averaging.Event{Kind: averaging.PeerLost, Peer: "b"}})
	granted(1, "without b")
	d.told("b", message(messageStatus, 0, float64(pulling)))
	granted(1, "with b again")
	m.clear()
	granted(0, "without a server")
}

// The speed of one that has gone is forgotten: of many that come and go nothing stays.
func TestSpeedsOfThoseGoneAreForgotten(t *testing.T) {
	d, m := drivenServer(t, Config{Self: "a", Server: "a", Batch: 4})
	for i := range 100 {
		id := topology.PeerID(fmt.Sprint("b", i))
		d.view("a", id)
		d.told(id, message(messageSpeed, 0, 7))
		if m.division.speeds[id] != 7 {
			t.Fatalf("the speeds are %v", m.division.speeds)
		}
	}
	if d.view("a"); len(m.division.speeds) > 1 {
		t.Errorf("%d speeds of a flock of one", len(m.division.speeds))
	}
}
