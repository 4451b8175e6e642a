package baseline

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// A coordinator that dies and begins anew before anybody has noticed halts the run too: it
// does not give the others the model that it begins with.
func TestCoordinatorThatBeginsAnewHalts(t *testing.T) {
	halts := func(actions []collective.Action) (halts bool) {
		for _, a := range actions {
			halts = halts || a.Kind == averaging.Halt
		}
		return halts
	}
	d, m := drivenMember(t, "b", true)
	if !halts(d.told("a", leads("b"))) || m.leads() {
		t.Error("b, which is told that it coordinates, goes on")
	}
	d, _ = drivenMember(t, "a", true)
	d.told("b", leads("b"))
	if halts(d.told("b", message(messageNone, 0, float64(messageWho)))) { // an answer of before it did
		t.Error("a halts for an old word")
	}
	if !halts(d.told("b", message(messageNone, 0, float64(messageStatus)))) {
		t.Error("a goes on with a coordinator that is none")
	}
}

// Whose trainer was told that the run halts takes no place in a ring any more: its gradient is
// not there.
func TestHaltedMemberTakesNoPlace(t *testing.T) {
	d, m := drivenMember(t, "a", true)
	d.told("b", leads("b"))
	d.handle(collective.Event{Event: averaging.Event{Kind: averaging.PeerLost, Peer: "b"}})
	if !m.halted {
		t.Fatal("it goes on")
	}
	place := collective.Message{Sum: &wire.Sum{Kind: wire.SumPlace, Name: round(m.version), Attempt: 1 << 16, Rank: 1, Size: 2, Partners: []string{"b"}}}
	for _, a := range d.told("b", place) {
		if a.Kind == collective.Load || a.Kind == collective.Send {
			t.Errorf("halted, it is to %s", a)
		}
	}
}

// TestCopiesAreForgottenTogether shows that all forget the gradients of the past in the round of one that has a copy of
// the parameters and has not made an update since, whoever that is.
func TestCopiesAreForgottenTogether(t *testing.T) {
	for _, as := range []float64{0.25, -1.25} {
		d, m := drivenMember(t, "a", true)
		d.told("b", leads("b"))
		d.told("b", collective.Message{Sum: &wire.Sum{Kind: wire.SumPlace, Name: round(m.version), Attempt: 1 << 16, Rank: 0, Size: 1}})
		term := uint32(1)
		for _, a := range d.told("b", collective.Message{Sum: &wire.Sum{Kind: wire.SumAsk, Name: round(m.version)}}) {
			if a.Kind == collective.Tell && a.Message.Sum != nil {
				term = a.Message.Sum.Term
			}
		}
		updates := false
		for _, a := range d.told("b", collective.Message{Sum: &wire.Sum{Kind: wire.SumCommit, Name: round(m.version), Attempt: 1 << 16, Term: term, Value: as}}) {
			if a.Kind == collective.Update {
				updates = true
				if a.Progress != 0.25 || a.Forget != (as < 0) {
					t.Errorf("of %g: %s", as, a)
				}
			}
		}
		if !updates {
			t.Errorf("of %g: no update", as)
		}
	}
}

// TestWhoHasACopySaysSo shows that a member brings its copy to the sum as that.
func TestWhoHasACopySaysSo(t *testing.T) {
	d, m := drivenMember(t, "a", true)
	d.told("b", leads("b"))
	copied := collective.Transfer{Parts: 1, Round: 7}
	d.inbound(collective.Offered, "b", 1, copied)
	d.handle(collective.Event{Event: averaging.Event{Kind: averaging.Finished, Peer: "b", Exchange: 1, Inbound: true}, Transfer: copied})
	brings := 0.0
	for _, a := range d.handle(collective.Event{Event: averaging.Event{Kind: collective.GradientDone, Progress: 0.5}, Samples: 1}) {
		if a.Kind == collective.Tell && a.Message.Sum != nil && a.Message.Sum.Name == "step 7" {
			brings = a.Message.Sum.Value
		}
	}
	if brings != -1.5 || !m.copied {
		t.Errorf("it brings %g", brings)
	}
}
