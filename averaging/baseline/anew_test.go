package baseline

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
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
	if halts(d.told("b", word(wordNone, 0, float64(wordWho)))) { // an answer of before it did
		t.Error("a halts for an old word")
	}
	if !halts(d.told("b", word(wordNone, 0, float64(collective.WordStatus)))) {
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
	at := collective.PlaceIn([]topology.PeerID{"b", "a"}, 1)
	for _, a := range d.told("b", at.Word(256)) {
		if a.Kind == collective.Load || a.Kind == collective.Send {
			t.Errorf("halted, it is to %s", a)
		}
	}
}

// Who has taken a copy, and has not made an update since, says so until all have forgotten the
// gradients of the past, though the coordinator has taken it for lost meanwhile.
func TestCopyIsRemembered(t *testing.T) {
	d, m := drivenMember(t, "b", true)
	d.view("b", "a", "c")
	d.told("a", word(wordNone, 0, 0))
	d.told("c", word(wordNone, 0, 0))
	copied := isAt(initialVersion, 0)
	copied.View |= isCopied
	d.told("a", copied)
	d.handle(collective.Event{Event: averaging.Event{Kind: averaging.PeerLost, Peer: "a"}})
	d.told("a", copied)
	d.told("c", isAt(initialVersion, 0))
	if !m.ring.Running {
		t.Fatal("no attempt runs")
	}
	m.ring.Stage = collective.Summed
	forgets := false
	for _, id := range []topology.PeerID{"a", "c"} {
		has := collective.Word{Kind: collective.WordStatus, Round: m.ring.Attempt(), View: isReady, Value: float64(collective.Summed)}
		for _, a := range d.told(id, has) {
			forgets = forgets || a.Kind == collective.Update && a.Forget
		}
	}
	if !forgets {
		t.Error("the optimizers do not forget")
	}
}
