package baseline

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

func drivenNeighbour(t *testing.T, self string) (*driven, *DPSGD) {
	t.Helper()
	m, err := NewDPSGD(Config{Self: topology.PeerID(self)})
	if err != nil {
		t.Fatal(err)
	}
	return &driven{t: t, machine: m}, m
}

// Anchors are links that one end alone knows of: neighbours in lock-step would wait for ever there.
func TestNeighboursKnowOfEachOther(t *testing.T) {
	members, passives := []topology.Member{{ID: "p", Role: topology.Active}}, []topology.PeerID{}
	for i := range 19 {
		m := topology.Member{ID: topology.PeerID(rune('A' + i)), Role: topology.Active + topology.Role(i%2)}
		if members = append(members, m); m.Role == topology.Passive {
			passives = append(passives, m.ID)
		}
	}
	view, err := topology.NewView(members)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := topology.NewOverlay(view)
	if err != nil {
		t.Fatal(err)
	}
	d, m := drivenNeighbour(t, "p")
	with := overlay.Anchored("p", passives)
	d.handle(collective.Event{Event: averaging.Event{Kind: averaging.ViewChanged, Overlay: with}})
	if all := len(with.Neighbours("p")); len(m.links) != len(overlay.Neighbours("p")) || len(m.links) == all {
		t.Errorf("it has %d links, of %d neighbours", len(m.links), all)
	}
}

// A view may lack the peer itself, as one that has just come.
func TestNeighbourOutsideItsView(t *testing.T) {
	d, m := drivenNeighbour(t, "p")
	d.view("a", "b")
	if len(m.links) > 0 {
		t.Errorf("it has links of a view without it: %v", m.links)
	}
	d.view("a", "p")
	if len(m.links) != 1 || m.links[0].peer != "a" {
		t.Errorf("of two members the one is not on the one link of the other: %v", m.links)
	}
}

// A neighbour that says a round beyond all sense does not set the count to where it would
// stay for good.
func TestNeighbourBeyondAllRounds(t *testing.T) {
	d, m := drivenNeighbour(t, "p")
	d.view("p", "a", "b")
	d.told("a", message(messageAt, 1000, 0)) // a joiner takes the number of its neighbours
	d.told("b", message(messageAt, 1<<64-1, 0))
	d.handle(collective.Event{Event: averaging.Event{Kind: averaging.StepDone}})
	if m.round != 1000 {
		t.Errorf("it is in round %d, want 1000", m.round)
	}
}
