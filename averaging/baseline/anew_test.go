package baseline

import (
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/sums"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// A coordinator that dies and begins anew before anybody has noticed has lost the parameters: it says so, and does not
// give the others the model that it begins with.
func TestCoordinatorThatBeginsAnewHasLostItsPlace(t *testing.T) {
	d, m := drivenMember(t, "b", true)
	none := message(messageNone, initialVersion, float64(messageStatus))
	if !slices.ContainsFunc(d.told("a", leads("b")), func(a collective.Action) bool { return a.Peer == "a" && a.Message == none }) || m.leads() {
		t.Error("b, which is told that it coordinates, does not say that it does not")
	}
	d, m = drivenMember(t, "a", true)
	d.told("b", leads("b"))
	if d.told("b", message(messageNone, 0, float64(messageWho))); m.coordinator != "b" { // an answer of before it did
		t.Error("a leaves b for an old word")
	}
	if d.told("b", none); m.coordinator == "b" {
		t.Error("a goes on with a coordinator that is none")
	}
}

// The place of a coordinator that is lost is taken by the member whose parameters have had the most updates, also if
// another is the first to look for one.
func TestTheNewestTakesThePlace(t *testing.T) {
	order := []topology.PeerID{"a", "b", "c", "d"}
	probe, m := drivenMember(t, "a", true)
	probe.view(order...)
	slices.SortFunc(order, func(x, y topology.PeerID) int {
		if m.members.Before(x, y) {
			return -1
		}
		return 1
	})
	lost, self, others := order[0], order[1], order[2:]
	first := func(versions ...uint64) (lead collective.Action, m *AllReduce) {
		m, err := NewAllReduce(Config{Self: self})
		if err != nil {
			t.Fatal(err)
		}
		d := &driven{t: t, machine: m}
		d.view("a", "b", "c", "d")
		m.version = 7
		d.handle(collective.Event{Event: averaging.Event{Kind: collective.GradientDone}, Samples: 1})
		d.told(lost, leads(lost))
		d.handle(collective.Event{Event: averaging.Event{Kind: averaging.PeerLost, Peer: lost}})
		for i, id := range others {
			for _, a := range d.told(id, message(messageNone, versions[i], float64(messageWho))) {
				if a.Kind == collective.Tell && a.Message.Kind == messageLead && lead.Peer == "" {
					lead = a
				}
			}
		}
		return lead, m
	}
	if lead, m := first(8, 9); m.leads() || lead.Peer != others[1] || lead.Message.Round != 9 || lead.Message.View != others[1].Fingerprint() {
		t.Errorf("%s is the newest, and %s leads: %t, or says %s", others[1], self, m.leads(), lead)
	}
	if _, m := first(7, 6); !m.leads() {
		t.Errorf("%s is as new as any, and does not lead", self)
	}
	d, m := drivenMember(t, "a", true)
	m.version = 9
	d.told("b", leads("b"))
	d.handle(collective.Event{Event: averaging.Event{Kind: averaging.PeerLost, Peer: "b"}})
	m.coordinator, m.succession = "", succession{predecessor: "b", asked: d.now}
	if d.told("b", collective.Message{Kind: messageLead, Round: 8, View: topology.PeerID("a").Fingerprint()}); m.leads() {
		t.Error("a takes the place for parameters that it has no more")
	}
	if d.told("b", collective.Message{Kind: messageLead, Round: 9, View: topology.PeerID("a").Fingerprint()}); !m.leads() {
		t.Error("a, the newest, does not take the place that it is given")
	}
}

// Who alone has lost the coordinator, which others say they follow, halts after a while, and leads nobody.
func TestWhoAloneHasLostTheCoordinatorHalts(t *testing.T) {
	m, err := NewAllReduce(Config{Self: "a"})
	if err != nil {
		t.Fatal(err)
	}
	d := &driven{t: t, machine: m}
	d.view("b", "a", "c")
	d.handle(collective.Event{Event: averaging.Event{Kind: collective.GradientDone}, Samples: 1, Initial: true})
	d.told("b", leads("b"))
	d.handle(collective.Event{Event: averaging.Event{Kind: averaging.PeerLost, Peer: "b"}})
	for lost := d.now; !m.halted; d.now += m.Deadline / 8 {
		if d.told("c", leads("b")); m.leads() || m.coordinator != "" {
			t.Fatalf("%q coordinates for a", m.coordinator)
		}
		if d.now > lost+2*restFor*m.Deadline {
			t.Fatal("a waits for ever")
		}
		m.seek()
	}
}

// TestCopiesAreForgottenTogether shows that all forget the gradients of the past in the round of one that has a copy of
// the parameters and has not made an update since, whoever that is.
func TestCopiesAreForgottenTogether(t *testing.T) {
	for _, as := range []float64{0.25, -1.25} {
		d, m := drivenMember(t, "a", true)
		d.told("b", leads("b"))
		d.told("b", collective.Message{Sum: &wire.Sum{Kind: wire.SumPlace, Name: round(m.version), Length: uint64(sums.OneStripe), Attempt: 1 << 16, Rank: 0, Size: 1}})
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

// Who looks for a coordinator when the run is over asks again when its timer says so: if each answer were answered with
// a question, two such members would never stop.
func TestAnswersAreNotAskedAgain(t *testing.T) {
	for name, build := range map[string]func() (collective.Machine, error){
		"allreduce": func() (collective.Machine, error) { return NewAllReduce(Config{Self: "a"}) },
		"server":    func() (collective.Machine, error) { return NewParamServer(Config{Self: "a"}, BSP{}) },
	} {
		t.Run(name, func(t *testing.T) {
			machine, err := build()
			if err != nil {
				t.Fatal(err)
			}
			d := &driven{t: t, machine: machine}
			d.view("b", "a", "c", "d")
			d.handle(collective.Event{Event: averaging.Event{Kind: collective.GradientDone}, Samples: 1, Initial: true})
			d.handle(collective.Event{Event: averaging.Event{Kind: averaging.RunOver}})
			for range 3 {
				for _, a := range d.told("c", message(messageNone, 0, float64(messageWho))) {
					if a.Kind == collective.Tell && a.Message.Kind == messageWho {
						t.Errorf("an answer is answered with a question to %s", a.Peer)
					}
				}
			}
		})
	}
}
