package topology

import "slices"

// anchors are links that one member keeps beside those of the overlay.
type anchors struct {
	of  PeerID
	ids []PeerID
}

// Anchored returns the overlay with further links that one active member initiates
// exchanges on, and that nobody else knows of: those of ids that are passive members
// and no neighbours yet come last among its Neighbours. Who makes up identities can
// choose their places in the order of members, and so who a member's neighbours are;
// it cannot choose a member's anchors. Degree, MaxDegree and Edges leave them out.
func (o *Overlay) Anchored(of PeerID, ids []PeerID) *Overlay {
	self, ok := o.view.Lookup(of)
	if !ok || self.Role != Active {
		return o
	}
	anchored := *o
	anchored.anchors = anchors{of: of, ids: slices.Clone(ids)}
	return &anchored
}

// add appends a member's anchors to its neighbours.
func (a anchors) add(o *Overlay, id PeerID, neighbours []PeerID) []PeerID {
	if id != a.of {
		return neighbours
	}
	for _, anchor := range a.ids {
		m, ok := o.view.Lookup(anchor)
		if ok && m.Role == Passive && !slices.Contains(neighbours, anchor) {
			neighbours = append(neighbours, anchor)
		}
	}
	return neighbours
}
