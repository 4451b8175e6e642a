package presence

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/topology"
)

// Anchors are partners that an active peer chooses beside its neighbours in the overlay.
// Neighbours follow from the order of all members' ids, so an attacker that makes up enough
// ids can become all of them. Anchors follow from the peer's own history and from a secret:
// first its present anchors, then partners of successful exchanges, the earliest first,
// then picks by the secret. A peer without history has none: every joiner first sees the
// same few members, and these would become everybody's anchors. docs/design/016 says what
// this gains.

const (
	// minAnchors is the number of partners of its own choice that an active peer keeps.
	minAnchors = 3
	// MaxGood bounds the partners that are remembered.
	MaxGood = 64
	// anchorLabel is the text whose signature is the secret; neither is ever sent.
	anchorLabel = "murmuration anchors 1"
)

// anchors picks partners.
type anchors struct {
	secret []byte
	kept   []topology.PeerID
	good   []topology.PeerID // the earliest first
	lived  []topology.PeerID // the first minAnchors partners of this life
}

// newAnchors makes the anchors of an identity with these good partners in earlier lives. A
// signature is the same each time, so a peer that restarts makes the same picks.
func newAnchors(identity transport.Identity, past []transport.PeerID) anchors {
	secret, err := identity.Sign([]byte(anchorLabel))
	if err != nil {
		secret = []byte(identity.Self()) // then anybody can compute the picks; the other rules still hold
	}
	return anchors{secret: secret, good: slices.Clone(past)}
}

// proved notes a partner of a successful exchange. news is true if the partner is new, or
// the first of this life.
func (a *anchors) proved(id topology.PeerID, present func(topology.PeerID) bool) (news bool) {
	news = len(a.lived) == 0
	if len(a.lived) < minAnchors && !slices.Contains(a.lived, id) {
		a.lived = append(a.lived, id)
	}
	if slices.Contains(a.good, id) {
		return news
	}
	if len(a.good) >= MaxGood {
		gone := slices.IndexFunc(a.good, func(id topology.PeerID) bool { return !present(id) })
		if gone < 0 {
			return news
		}
		a.good = slices.Delete(a.good, gone, gone+1)
	}
	a.good = append(a.good, id)
	return true
}

// hold adds the peer's anchors to the overlay of a view. Other shapes than Exponential are what they say, and have none.
func (a *anchors) hold(overlay *topology.Overlay, self topology.PeerID) *topology.Overlay {
	view := overlay.View()
	if m, ok := view.Lookup(self); !ok || m.Role != topology.Active || view.Shape() != topology.Exponential {
		return overlay
	}
	if len(a.lived) < minAnchors {
		a.kept = nil
	}
	a.kept = a.pick(view)
	return overlay.Anchored(self, a.kept)
}

// pick chooses minAnchors passive members, or all if there are fewer.
func (a *anchors) pick(view *topology.View) []topology.PeerID {
	picked := make([]topology.PeerID, 0, minAnchors)
	take := func(ids []topology.PeerID) {
		for _, id := range ids {
			if len(picked) == minAnchors {
				return
			}
			m, ok := view.Lookup(id)
			if ok && m.Role == topology.Passive && !slices.Contains(picked, id) {
				picked = append(picked, id)
			}
		}
	}
	take(a.kept)
	take(a.good)
	if len(picked) < minAnchors {
		take(a.byLot(view))
	}
	return picked
}

// byLot is the passive members of a view in an order derived from the secret.
func (a *anchors) byLot(view *topology.View) []topology.PeerID {
	type lot struct {
		id  topology.PeerID
		sum [sha256.Size]byte
	}
	var lots []lot
	for i := range view.Len() {
		if m := view.At(i); m.Role == topology.Passive {
			lots = append(lots, lot{m.ID, sha256.Sum256(append(slices.Clone(a.secret), m.ID...))})
		}
	}
	slices.SortFunc(lots, func(x, y lot) int { return bytes.Compare(x.sum[:], y.sum[:]) })
	ids := make([]topology.PeerID, len(lots))
	for i, l := range lots {
		ids[i] = l.id
	}
	return ids
}
