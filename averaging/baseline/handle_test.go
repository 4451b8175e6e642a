package baseline_test

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/averaging/merge"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// A runtime that knows exchanges only hears nothing else of any machine, and none leaves it
// without the answer to a step or a proposal.
func TestMachinesSpeakOfExchangesToWhoKnowsNoMore(t *testing.T) {
	config := baseline.Config{Self: "a"}
	for _, m := range []averaging.Machine{
		allReduce(t, config)("a"), paramServer(t, config, gates(t)["asp"])("a"), dpsgd(t, config)("a"),
		merging(t, merge.Config{})("a"), baseline.Alone{},
	} {
		traits := collective.Of(m).Traits()
		view, err := topology.NewView([]topology.Member{{ID: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		overlay, err := topology.NewOverlay(view)
		if err != nil {
			t.Fatal(err)
		}
		m.Handle(0, averaging.Event{Kind: averaging.ViewChanged, Overlay: overlay}, nil)
		said := map[averaging.ActionKind]int{}
		for _, e := range []averaging.Event{{Kind: averaging.StepDone}, {Kind: averaging.Proposed, Peer: "x", Exchange: 1, Inbound: true}} {
			for _, a := range m.Handle(1, e, nil) {
				said[a.Kind]++
				if a.Kind >= collective.Send {
					t.Errorf("%s says %d", traits.Algorithm, a.Kind)
				}
			}
		}
		if said[averaging.Proceed] != 1 || said[averaging.Refuse] != 1 || traits.Algorithm == collective.Unnamed {
			t.Errorf("%s says %v", traits.Algorithm, said)
		}
	}
	for a := range collective.Algorithm(collective.MaxAlgorithm) {
		if a.String() == "" {
			t.Errorf("algorithm %d has no words", a)
		}
	}
}
