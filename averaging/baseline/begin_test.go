package baseline

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
)

// drivenLeader leads a ring of b and a.
func drivenLeader(t *testing.T, initial bool) (*driven, *AllReduce) {
	t.Helper()
	m, err := NewAllReduce(Config{Self: "b"})
	if err != nil {
		t.Fatal(err)
	}
	d := &driven{t: t, machine: m}
	d.view("b", "a")
	if m.first() != "b" {
		t.Fatal("b is not the first in the order")
	}
	d.handle(averaging.Event{Kind: averaging.GradientDone, Samples: 1, Initial: initial})
	d.told("a", word(wordNone, 0, 0, 0))
	if !m.leads() {
		t.Fatal("b does not lead")
	}
	return d, m
}

// Two begin with equal models only if both say that theirs are those of the beginning: how
// much of the run is done says nothing where a run has no end.
func TestWhoBeginsWithEqualModels(t *testing.T) {
	for _, c := range []struct{ leader, member, seated bool }{
		{true, true, true}, {true, false, false}, {false, true, false}, {false, false, false},
	} {
		d, _ := drivenLeader(t, c.leader)
		p := uint64(ready)
		if c.member {
			p |= phaseInitial
		}
		var seated, given bool
		for _, a := range d.told("a", word(wordStatus, 0, 0, packed(0, p, statusBits))) {
			seated = seated || a.Kind == averaging.Tell && a.Word.Kind == wordPlace
			given = given || a.Kind == averaging.Send && a.Transfer.From == averaging.Parameters
		}
		if seated != c.seated || given == c.seated {
			t.Errorf("leader initial %t, member initial %t: seated %t, given the parameters %t", c.leader, c.member, seated, given)
		}
	}
}

// Who has been sent parameters, all or some of them, has those of the beginning no more.
func TestWhoIsGivenParametersHasBegun(t *testing.T) {
	m, err := NewAllReduce(Config{Self: "a"})
	if err != nil {
		t.Fatal(err)
	}
	d := &driven{t: t, machine: m}
	d.view("b", "a")
	begin := averaging.Event{Kind: averaging.GradientDone, Samples: 1, Initial: true}
	d.handle(begin)
	said := func() (initial bool) {
		for _, a := range d.told("b", standing{leader: "b"}.word(77)) {
			if a.Kind == averaging.Tell && a.Word.Kind == wordStatus {
				_, p := unpacked(a.Word.Value, statusBits)
				initial = p&phaseInitial != 0
			}
		}
		return initial
	}
	if !said() {
		t.Error("it does not say that it begins")
	}
	parameters := averaging.Transfer{Parts: 1}
	d.inbound(averaging.Offered, "b", 1, parameters)
	d.inbound(averaging.Failed, "b", 1, parameters)
	m.leader = ""
	if said() {
		t.Error("it says that it begins with a model that is partly another's")
	}
	m.waiting, m.leader = false, ""
	d.handle(begin) // its trainer was cancelled, and asks again
	if said() {
		t.Error("it says so when asked again")
	}
}
