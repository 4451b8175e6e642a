package watch

import (
	"slices"

	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/topology"
)

// RingOf returns the members in the order of the overlay, those that do not train behind them, and the overlay. Without roles
// there is no overlay, and they are in the order that they came in.
func RingOf(members []control.Member, shape topology.Shape) ([]control.Member, *topology.Overlay) {
	idle := func(m control.Member) bool { return m.State == control.Idle }
	var of []topology.Member
	for _, m := range members {
		if !idle(m) {
			of = append(of, topology.Member{ID: m.ID, Role: m.Role, Unreachable: m.Unreachable, Place: m.Place})
		}
	}
	view, err := shape.View(of)
	if err != nil {
		return members, nil
	}
	ring := make([]control.Member, 0, len(members))
	for _, m := range view.Members() {
		ring = append(ring, members[slices.IndexFunc(members, func(n control.Member) bool { return n.ID == m.ID })])
	}
	ring = append(ring, slices.DeleteFunc(slices.Clone(members), func(m control.Member) bool { return !idle(m) })...)
	overlay, err := topology.NewOverlay(view)
	if err != nil {
		return ring, nil
	}
	return ring, overlay
}
