package stages

import (
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/topology"
)

// TestHome: what goes on to the member that it is of goes to no other, though that is free, and is given up once that is gone.
func TestHome(t *testing.T) {
	h, err := NewHolder(Config{Stage: 2, Stages: 4, Home: true})
	if err != nil {
		t.Fatal(err)
	}
	here := func(topology.PeerID) bool { return true }
	h.Members(0, []topology.PeerID{"a", "b"}, here)
	for number := range uint64(4) {
		source := topology.PeerID([]string{"a", "b"}[number%2])
		h.Forward(1, "m", number, ID{Source: source, Number: number})
		do := h.Computed(2, Key{"m", number}, false)
		if at := slices.IndexFunc(do, func(a Action) bool { return a.Kind == Send }); at < 0 || do[at].To != source {
			t.Errorf("what is of %s: %+v", source, do)
		}
	}
	do := h.Members(3, []topology.PeerID{"b"}, here)
	lost := 0
	for _, a := range do {
		if a.Kind == Send {
			t.Errorf("what is of %s goes to %s", a.ID.Source, a.To)
		}
		if a.Kind == Reply && a.Answer == GivenUp && a.To == "m" && a.ID.Source == "a" {
			lost++
		}
	}
	if c := h.Counts(); lost != 2 || c.Lost != 2 || c.Came != 4 {
		t.Errorf("%d given up, %+v", lost, c)
	}
}
