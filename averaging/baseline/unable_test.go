package baseline

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
)

// A coordinator that cannot send what the ring has summed tries a few times, and then halts.
func TestCoordinatorThatCannotSendHalts(t *testing.T) {
	d, m := drivenCoordinator(t, true)
	for try := 1; !m.halted; try++ {
		if try > 3 {
			t.Fatalf("it still coordinates after %d attempts", try-1)
		}
		d.told("a", isAt(initialVersion, m.ring.Attempt()))
		if len(m.Out) == 0 {
			t.Fatal("it sends nothing")
		}
		d.handle(collective.Event{Event: averaging.Event{Kind: averaging.Failed, Peer: "a", Exchange: m.Out[0].ID, Reason: averaging.Unfit}})
	}
	for _, a := range d.told("a", isAt(initialVersion, m.ring.Attempt())) {
		if a.Kind == collective.Tell && a.Word.Kind != wordNone {
			t.Errorf("halted, it says %s", a)
		}
	}
}

// A member names itself to the coordinator.
func TestMemberThatCannotSendSaysSo(t *testing.T) {
	d, m := drivenMember(t, "a", true)
	d.told("b", leads("b"))
	at := collective.Place{Rank: 1, Size: 2, Next: collective.Mark("b"), Previous: collective.Mark("b")}
	d.told("b", at.Word(256))
	named := false
	for _, a := range d.handle(collective.Event{Event: averaging.Event{Kind: averaging.Failed, Peer: "b", Exchange: m.Out[0].ID, Reason: averaging.Unfit}}) {
		named = named || a.Kind == collective.Tell && a.Word.Kind == collective.WordBroken && a.Word.View == collective.Mark("a")
	}
	if !named {
		t.Error("it does not name itself")
	}
}

// A worker does not try again to push what cannot be sent: it asks for the parameters.
func TestWorkerThatCannotSendGoesOn(t *testing.T) {
	d, m := drivenServer(t, Config{Self: "a", Server: "b"})
	d.view("b", "a")
	d.handle(collective.Event{Event: averaging.Event{Kind: collective.GradientDone}, Samples: 1})
	d.told("b", leads("b"))
	if len(m.Out) != 1 {
		t.Fatal("it does not push")
	}
	d.handle(collective.Event{Event: averaging.Event{Kind: averaging.Failed, Peer: "b", Exchange: m.Out[0].ID, Reason: averaging.Unfit}})
	if m.stage != pulling {
		t.Errorf("it is in stage %d", m.stage)
	}
}
