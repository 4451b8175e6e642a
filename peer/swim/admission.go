package swim

import "github.com/seed-97356399/murmuration/peer/seam"

// everybody is the admission of a run that takes every peer.
type everybody struct{}

// Mark implements seam.Admission.
func (everybody) Mark() []byte { return nil }

// Admit implements seam.Admission.
func (everybody) Admit(seam.PeerID, []byte) error { return nil }

// admits tells whether a peer that shows a mark may be a member.
func (b *book) admits(peer seam.PeerID, mark []byte) bool {
	return b.admission.Admit(peer, mark) == nil
}
