package baseline

import (
	"fmt"
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/sums"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// drivenCoordinator coordinates a ring of b and a.
func drivenCoordinator(t *testing.T, initial bool) (*driven, *AllReduce) {
	t.Helper()
	d, m := drivenMember(t, "b", initial)
	d.told("a", message(messageNone, 0, 0))
	if !m.leads() {
		t.Fatal("b does not coordinate")
	}
	return d, m
}

// drivenMember is one of the ring of b and a.
func drivenMember(t *testing.T, self topology.PeerID, initial bool) (*driven, *AllReduce) {
	t.Helper()
	m, err := NewAllReduce(Config{Self: self})
	if err != nil {
		t.Fatal(err)
	}
	d := &driven{t: t, machine: m}
	d.view("b", "a")
	if m.members.First() != "b" {
		t.Fatal("b is not the first in the order")
	}
	d.handle(collective.Event{Event: averaging.Event{Kind: collective.GradientDone}, Samples: 1, Initial: initial})
	return d, m
}

// leads is the word of one that coordinates.
func leads(id topology.PeerID) collective.Message {
	return collective.Message{Kind: messageLead, View: id.Fingerprint()}
}

// isAt is the word of a member that is ready, at a version.
func isAt(version uint64) collective.Message {
	return collective.Message{Kind: messageStatus, View: version<<statusBits | isReady}
}

// joins has a member take part in the sum of a version, which answers the first question of its coordinator.
func (d *driven) joins(id topology.PeerID, version uint64) []collective.Action {
	return d.told(id, collective.Message{Sum: &wire.Sum{
		Kind: wire.SumStatus, Name: fmt.Sprintf("step %d", version), Op: uint8(sums.Moved), Least: 1, Timeout: 30000, Term: 1, Question: 1,
	}})
}

// Two begin with equal models only if both say that theirs are those of the beginning: how
// much of the run is done says nothing where a run has no end.
func TestWhoBeginsWithEqualModels(t *testing.T) {
	for _, c := range []struct{ coordinator, member, seated bool }{
		{true, true, true}, {true, false, false}, {false, true, false}, {false, false, false},
	} {
		d, _ := drivenCoordinator(t, c.coordinator)
		version := unknownVersion
		if c.member {
			version = initialVersion
		}
		var seated, given bool
		for _, a := range append(d.told("a", isAt(version)), d.joins("a", version)...) {
			seated = seated || a.Kind == collective.Tell && a.Message.Sum != nil && a.Message.Sum.Kind == wire.SumPlace
			given = given || a.Kind == collective.Send && a.Transfer.From == collective.Parameters
		}
		if seated != c.seated || given == c.seated {
			t.Errorf("coordinator initial %t, member initial %t: seated %t, given the parameters %t", c.coordinator, c.member, seated, given)
		}
	}
}

// Who has been sent parameters, all or some of them, has those of the beginning no more.
func TestWhoIsGivenParametersHasBegun(t *testing.T) {
	d, m := drivenMember(t, "a", true)
	said := func() (initial bool) {
		for _, a := range d.told("b", leads("b")) {
			if a.Kind == collective.Tell && a.Message.Kind == messageStatus {
				initial = a.Message.View>>statusBits == initialVersion
			}
		}
		return initial
	}
	if !said() {
		t.Error("it does not say that it begins")
	}
	parameters := collective.Transfer{Parts: 1}
	d.inbound(collective.Offered, "b", 1, parameters)
	d.inbound(averaging.Failed, "b", 1, parameters)
	m.coordinator = ""
	if said() {
		t.Error("it says that it begins with a model that is partly another's")
	}
	m.waiting, m.coordinator = false, ""
	d.handle(collective.Event{Event: averaging.Event{Kind: collective.GradientDone}, Samples: 1, Initial: true}) // its trainer was cancelled, and asks again
	if said() {
		t.Error("it says so when asked again")
	}
}

// Who looks for a coordinator does not ask at once again whom it has asked: the answer would
// be asked about too, and so on without end.
func TestQuestionsAreNotAskedAtOnceAgain(t *testing.T) {
	d, m := drivenMember(t, "a", true)
	asked := 0
	for range 10 {
		for _, a := range d.told("b", message(messageNone, 0, 0)) { // b waits for nothing yet
			if a.Kind == collective.Tell && a.Message.Kind == messageWho {
				asked++
			}
		}
		if m.coordinator != "" {
			break
		}
	}
	if asked > 1 {
		t.Errorf("it asks %d times in ten answers", asked)
	}
}
