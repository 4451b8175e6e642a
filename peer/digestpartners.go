package peer

import (
	"math"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// Met tells of exchanges that a member began with one partner.
type Met struct {
	Partner seam.PeerID
	// Exchanges counts those that completed. As others tell them they begin again at 0
	// after 2^32.
	Exchanges uint64
	mark      uint64 // what a digest has in the place of the partner's id
}

// metBy are the partners of the links that Stats tells of.
func metBy(links []LinkStats) []Met {
	met := make([]Met, len(links))
	for i, l := range links {
		met[i] = Met{Partner: l.Partner, Exchanges: l.Exchanges, mark: fingerprint(l.Partner)}
	}
	return met
}

func tellMet(said *wire.Digest, met []Met) {
	said.Met = uint8(min(len(met), wire.MaxDigestPartners))
	for i, m := range met[:said.Met] {
		said.Partners[i] = wire.DigestPartner{Mark: m.mark, Exchanges: uint32(m.Exchanges & math.MaxUint32)}
	}
}

func hearMet(said *wire.Digest) []Met {
	met := make([]Met, said.Met)
	for i := range met {
		met[i] = Met{Exchanges: uint64(said.Partners[i].Exchanges), mark: said.Partners[i].Mark}
	}
	return met
}

// named gives partners the ids of members whose marks they have. The lists are
// replaced, since the digests that are kept share them.
func (p *Peer) named(digests []Digest) {
	members := map[uint64]seam.PeerID{fingerprint(p.Self()): p.Self()}
	for _, r := range p.flock.records() {
		members[fingerprint(r.Peer)] = r.Peer
	}
	for i := range digests {
		var met []Met
		for _, m := range digests[i].Partners {
			if id, here := members[m.mark]; here {
				m.Partner = id
				met = append(met, m)
			}
		}
		digests[i].Partners = met
	}
}
