package baseline

import (
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// Where anybody can open a stream, a stranger is told who leads and believed nothing: not
// who leads, nor that it knows no leader, nor that it parts.
func TestStrangersAreNotBelieved(t *testing.T) {
	ring, err := NewAllReduce(Config{Self: "a"})
	if err != nil {
		t.Fatal(err)
	}
	server, err := NewParamServer(Config{Self: "a"}, BSP{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		machine averaging.Machine
		o       *office
	}{"allreduce": {ring, &ring.office}, "paramserver": {server, &server.office}} {
		t.Run(name, func(t *testing.T) {
			d := &driven{t: t, machine: c.machine}
			d.view("a", "b", "c")
			d.handle(averaging.Event{Kind: averaging.GradientDone, Samples: 1})
			words := []averaging.Word{
				standing{leader: "b", followers: 9}.word(77), standing{leader: "a", followers: 9}.word(77),
				word(wordNone, 5, 77, 0), word(wordWho, 5, 77, 0), word(wordParting, 5, 77, 0),
				word(wordStatus, 0, 0, 1), word(wordBatch, 0, 0, 1), word(wordSpeed, 0, 0, 1), word(wordHeard, 0, 77, 0),
			}
			for _, leader := range []topology.PeerID{"", "b", "a"} {
				switch leader {
				case "b":
					d.told("b", standing{leader: "b"}.word(77))
				case "a":
					d.handle(averaging.Event{Kind: averaging.PeerLost, Peer: "b"})
					d.handle(averaging.Event{Kind: averaging.PeerLost, Peer: "c"})
					d.now += c.o.config.Deadline
					d.handle(averaging.Event{Kind: averaging.TimerFired, Timer: averaging.RoundDeadline, Exchange: c.o.tick})
				}
				if c.o.leader != leader {
					t.Fatalf("%q leads, want %q", c.o.leader, leader)
				}
				for _, w := range words {
					for _, a := range d.told("stranger", w) {
						asked := w.Kind == wordWho || w.Kind == wordStatus && leader != "a"
						if a.Kind == averaging.Tell && !(asked && a.Peer == "stranger") {
							t.Errorf("with leader %q, word %d has it say %s", leader, w.Kind, a)
						}
					}
					if c.o.leader != leader {
						t.Fatalf("word %d of a stranger makes %q the leader", w.Kind, c.o.leader)
					}
				}
			}
			follows := func(a attendant) bool { return a.id == "stranger" }
			if slices.Contains(c.o.none, "stranger") || slices.ContainsFunc(ring.members, follows) || server.hired("stranger") >= 0 {
				t.Error("a stranger counts")
			}
		})
	}
}
