package bridge

import (
	"crypto/ed25519"
	"slices"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// resume is the part of each answer that a trainer keeps and gives to a new bridge if its own dies:
// the peer then comes back as the same member in its next incarnation, with the values in the memory.
type resume struct {
	// Seed is that of the identity; only the trainer and its bridges have it. A trainer that writes a resume to a
	// file leaves it out: the peer is then the same member only if the service has its identity.
	Seed []byte `json:"seed,omitempty"`
	// Peer is the member that the figures are of.
	Peer        transport.PeerID `json:"peer,omitempty"`
	Incarnation uint64           `json:"incarnation"`
	Age         uint64           `json:"age"`
	FlockSteps  uint64           `json:"flock_steps"`
	Own         uint64           `json:"own"`
	// Partners are where the flock is, should those that the trainer has joined be gone by then.
	Partners []peer.Partner `json:"partners,omitempty"`
}

// maxResumed bounds the partners in a resume, which every commit's answer has.
const maxResumed = 4

// partnersOf are some members that can be reached: those after the peer itself in the order of
// ids, so that the peers of a flock name different ones.
func partnersOf(members []control.Member, self transport.PeerID) (partners []peer.Partner) {
	at := slices.IndexFunc(members, func(m control.Member) bool { return m.ID == self })
	for i := range members {
		m := members[(at+1+i)%len(members)]
		if m.ID != self && len(m.Addresses) > 0 && !m.Leaving && len(partners) < maxResumed {
			partners = append(partners, peer.Partner{ID: m.ID, Addresses: m.Addresses})
		}
	}
	return partners
}

// partners are those of the last incarnation.
func (r *resume) partners() []peer.Partner {
	if r == nil {
		return nil
	}
	return r.Partners
}

// key is the identity of a trainer's peer: that of its last incarnation, or a new one.
func (r *resume) key() (ed25519.PrivateKey, error) {
	switch {
	case r == nil, r.Seed == nil && r.Peer != "":
		_, key, err := ed25519.GenerateKey(nil)
		return key, err
	case len(r.Seed) != ed25519.SeedSize:
		return nil, refuse(CodeSyntax, "give back what the last answer had, without the seed if it was not kept", "resume has a seed of %d bytes", len(r.Seed))
	}
	return ed25519.NewKeyFromSeed(r.Seed), nil
}

// checkpoint is the peer's state that belongs to the values in the memory.
func (r *resume) checkpoint() peer.Checkpoint {
	if r == nil {
		return peer.Checkpoint{}
	}
	return peer.CheckpointOf(stats.Peer{Steps: r.Own, Age: r.Age, FlockSteps: r.FlockSteps, Incarnation: r.Incarnation})
}

// last is the member that a resume without a seed is of.
func (r *resume) last() transport.PeerID {
	if r == nil || r.Seed != nil {
		return ""
	}
	return r.Peer
}

// CheckpointOf is Checkpoint for the peer with the id self, which joins others or begins a flock. One that comes
// back as another member and joins others has no steps of its own: the flock counts them as those of a member that
// has left.
func (h Hello) CheckpointOf(self transport.PeerID, joins bool) peer.Checkpoint {
	if h.Last == "" || h.Last == self || !joins {
		return h.Checkpoint
	}
	return peer.CheckpointOf(stats.Peer{Age: h.resume.Age, FlockSteps: h.resume.FlockSteps})
}
