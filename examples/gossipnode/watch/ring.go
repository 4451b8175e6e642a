package watch

import (
	"maps"
	"slices"

	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/topology"
)

// RingOf returns the members in the order of the overlay, those that do not train behind them, and the overlay; where they
// train stages of a model, in the order of the stages, each of which has an overlay of its own. Without roles there is no
// overlay, and they are in the order that they came in.
func RingOf(members []control.Member, shape topology.Shape) (ring []control.Member, overlays []*topology.Overlay) {
	stages := map[uint8][]topology.Member{}
	for _, m := range members {
		if !idle(m) {
			stages[m.Stage] = append(stages[m.Stage], topology.Member{ID: m.ID, Role: m.Role, Unreachable: m.Unreachable, Place: m.Place})
		}
	}
	for _, stage := range slices.Sorted(maps.Keys(stages)) {
		view, err := shape.View(stages[stage])
		if err != nil {
			return members, nil
		}
		for _, m := range view.Members() {
			ring = append(ring, members[slices.IndexFunc(members, func(n control.Member) bool { return n.ID == m.ID })])
		}
		if overlay, err := topology.NewOverlay(view); err == nil {
			overlays = append(overlays, overlay)
		}
	}
	return append(ring, slices.DeleteFunc(slices.Clone(members), func(m control.Member) bool { return !idle(m) })...), overlays
}

// idle tells whether a member does not train.
func idle(m control.Member) bool { return m.State == control.Idle }
