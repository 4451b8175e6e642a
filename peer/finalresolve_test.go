package peer

import (
	"errors"
	"testing"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestNothingIsAppliedOncePooled: neither a step nor an answer about slices in doubt
// changes a model that is part of the merge.
func TestNothingIsAppliedOncePooled(t *testing.T) {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{4}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := replica.New(tensor.NewParams(layout), replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	late := &Peer{replica: r, sides: newSides(r), final: &final{}}
	late.final.adopt(r) // a result that it was given
	if applied, _, _ := late.resolve("another", 1, wire.Status{}, wire.Settled{Known: true, Applied: 1}); applied != 0 || !late.final.pooled {
		t.Errorf("%d slices are applied to a result that was given", applied)
	}
	p := &Peer{replica: r, sides: newSides(r), final: &final{}, control: &control{}}
	if _, err := p.add(tensor.Vector{1, 1, 1, 1}, 0); err != nil {
		t.Errorf("a step of the run is not applied: %v", err)
	}
	if !p.noMoreSteps() || p.noMoreSteps() {
		t.Error("the run ends once")
	}
	if _, err := p.add(tensor.Vector{1, 1, 1, 1}, 0); !errors.Is(err, ErrRunOver) {
		t.Errorf("a step after the run: %v", err)
	}
	p.final.pool(r, 0)
	if applied, _, _ := p.resolve("another", 1, wire.Status{}, wire.Settled{Known: true, Applied: 1}); applied != 0 {
		t.Errorf("%d slices are applied", applied)
	}
	x := make(tensor.Vector, 4)
	if r.Snapshot(x); x[0] != 1 {
		t.Errorf("the parameters are %v", x)
	}
	if p.final.done() || !p.final.pending() {
		t.Error("it is not settled yet")
	}
	if p.final.settle(); !p.final.done() || p.final.pending() {
		t.Error("it is settled")
	}
}
