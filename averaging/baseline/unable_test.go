package baseline

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/sums"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// A coordinator that cannot send what is summed halts the run.
func TestCoordinatorThatCannotSendHalts(t *testing.T) {
	d, m := drivenCoordinator(t, true)
	d.joins("a", initialVersion)
	if len(m.Out) == 0 {
		t.Fatal("it sends nothing")
	}
	d.handle(collective.Event{Event: averaging.Event{Kind: averaging.Failed, Peer: "a", Exchange: m.Out[0].ID, Reason: averaging.Unfit}})
	if !m.halted {
		t.Error("it goes on")
	}
	for _, a := range d.told("a", isAt(initialVersion)) {
		if a.Kind == collective.Tell && a.Message.Kind != messageNone {
			t.Errorf("halted, it says %s", a)
		}
	}
}

// A member that cannot leaves the sum, and waits for the parameters.
func TestMemberThatCannotSendSaysSo(t *testing.T) {
	d, m := drivenMember(t, "a", true)
	d.told("b", leads("b"))
	d.told("b", collective.Message{Sum: &wire.Sum{Kind: wire.SumPlace, Name: round(m.version), Length: uint64(sums.OneStripe), Attempt: 1 << 16, Rank: 1, Size: 2, Partners: []string{"b"}}})
	left, unknown := false, false
	for _, a := range d.handle(collective.Event{Event: averaging.Event{Kind: averaging.Failed, Peer: "b", Exchange: m.Out[0].ID, Reason: averaging.Unfit}}) {
		left = left || a.Kind == collective.Tell && a.Message.Sum != nil && a.Message.Sum.Kind == wire.SumLeft
		unknown = unknown || a.Kind == collective.Tell && a.Message.Kind == messageStatus && a.Message.View == isReady
	}
	if !left || !unknown || !m.waiting {
		t.Errorf("it leaves: %t, needs parameters: %t, its trainer waits: %t", left, unknown, m.waiting)
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
