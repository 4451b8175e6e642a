package baseline

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// Only the one before it in the ring hands a member parts of the sum, and strangers do not
// fill the memory of who came too early.
func TestRingTakesFromThePreviousOnly(t *testing.T) {
	m, err := NewAllReduce(Config{Self: "a"})
	if err != nil {
		t.Fatal(err)
	}
	d := &driven{t: t, machine: m}
	d.view("a", "b", "c")
	const attempt = 256
	early := collective.Transfer{From: collective.Sum, Into: collective.Sum, Add: true, Parts: 3, Round: attempt}
	for _, from := range []topology.PeerID{"s1", "s2", "s3", "s4", "s5"} {
		d.inbound(collective.Offered, from, 1, early)
	}
	if answer := d.inbound(collective.Offered, "c", 1, early); answer.Reason != averaging.Round {
		t.Errorf("a member is answered by %s", answer)
	}
	d.handle(collective.Event{Event: averaging.Event{Kind: collective.GradientDone}, Samples: 1})
	d.told("b", leads("b"))
	at := collective.PlaceIn([]topology.PeerID{"b", "c", "a"}, 2)
	asked := 0
	for _, a := range d.told("b", at.Word(attempt)) {
		if a.Kind == collective.Tell && a.Word.Kind == collective.WordAgain {
			asked++
			if a.Peer != "c" {
				t.Errorf("%s is asked to send again", a.Peer)
			}
		}
	}
	if asked != 1 {
		t.Errorf("%d are asked to send again", asked)
	}
	part := collective.Transfer{From: collective.Sum, Into: collective.Sum, Part: 2, Parts: 3, Round: attempt}
	for _, from := range []topology.PeerID{"stranger", "b"} {
		if answer := d.inbound(collective.Offered, from, 9, part); answer.Kind != averaging.Refuse || answer.Reason != averaging.Unfit {
			t.Errorf("what %s hands on is answered by %s", from, answer)
		}
	}
	if answer := d.inbound(collective.Offered, "c", 9, part); answer.Kind != averaging.Accept {
		t.Errorf("what the previous hands on is answered by %s", answer)
	}
}
