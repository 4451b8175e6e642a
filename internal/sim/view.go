package sim

import (
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// adopt makes a view of members, whose roles stay as far as they can, and the overlay
// of it.
func (w *World) adopt(members []topology.Member) error {
	view, err := topology.NewView(members)
	if err != nil {
		return fmt.Errorf("simulated world: %w", err)
	}
	overlay, err := topology.NewOverlay(view)
	if err != nil {
		return fmt.Errorf("simulated world: %w", err)
	}
	w.overlay = overlay
	return nil
}

// admit adds a member to the view.
func (w *World) admit(p *peer) error {
	return w.adopt(append(w.overlay.View().Members(), topology.Member{ID: p.id, Unreachable: p.unreachable}))
}

// dismiss takes a member out of the view.
func (w *World) dismiss(id topology.PeerID) error {
	return w.adopt(slices.DeleteFunc(w.overlay.View().Members(), func(m topology.Member) bool { return m.ID == id }))
}

// announce shows the view to all who are there and have not seen it.
func (w *World) announce() {
	for _, p := range w.peers {
		p.look()
	}
}

// knows tells whether another is a member as far as the peer has heard: nobody else is
// served.
func (p *peer) knows(other int) bool {
	if p.seen == nil {
		return false
	}
	_, member := p.seen.View().Lookup(p.world.peers[other].id)
	return member
}

// look shows the peer the view, unless it has seen it or is no member of it.
func (p *peer) look() {
	overlay := p.world.overlay
	if p.gone || p.seen == overlay {
		return
	}
	if _, member := overlay.View().Lookup(p.id); !member {
		return
	}
	p.seen = overlay
	p.tell(averaging.Event{Kind: averaging.ViewChanged, Overlay: overlay})
}
