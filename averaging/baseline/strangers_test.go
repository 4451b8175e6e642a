package baseline

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/wire"
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
		machine collective.Machine
		o       *coordination
	}{"allreduce": {ring, &ring.coordination}, "paramserver": {server, &server.coordination}} {
		t.Run(name, func(t *testing.T) {
			d := &driven{t: t, machine: c.machine}
			d.view("a", "b", "c")
			d.handle(collective.Event{Event: averaging.Event{Kind: collective.GradientDone}, Samples: 1})
			words := []collective.Message{
				leads("b"), leads("a"),
				message(messageNone, 5, 0), message(messageWho, 5, 0), message(messageParting, 5, 0),
				message(messageStatus, 0, 1), message(messageBatch, 0, 1), message(messageSpeed, 0, 1), message(collective.MessageAck, 0, 0),
				{Sum: &wire.Sum{Kind: wire.SumStatus, Name: "step 1"}}, {Sum: &wire.Sum{Kind: wire.SumAsk, Name: "step 1"}},
			}
			for _, leader := range []topology.PeerID{"", "b"} {
				switch leader {
				case "b":
					d.told("b", leads("b"))
				}
				if c.o.coordinator != leader {
					t.Fatalf("%q leads, want %q", c.o.coordinator, leader)
				}
				for _, w := range words {
					for _, a := range d.told("stranger", w) {
						asked := w.Kind == messageWho || w.Kind == messageStatus
						if a.Kind == collective.Tell && !(asked && a.Peer == "stranger") {
							t.Errorf("with leader %q, word %d has it say %s", leader, w.Kind, a)
						}
					}
					if c.o.coordinator != leader {
						t.Fatalf("word %d of a stranger makes %q the leader", w.Kind, c.o.coordinator)
					}
				}
			}
			_, follows := ring.said["stranger"]
			if _, knows := c.o.none["stranger"]; knows || follows || server.board.of("stranger") != nil || c.o.division.speeds["stranger"] > 0 {
				t.Error("a stranger counts")
			}
		})
	}
}
