package presence

import (
	"slices"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// A member's record names its algorithm. Members with another algorithm refuse this peer
// for reasons that look temporary, so the mismatch is logged once.

// mismatches are the members whose different algorithm has been logged. The zero value is
// ready.
type mismatches struct{ known []transport.PeerID }

// look warns about members with another algorithm, once for each while it is a member.
func (m *mismatches) look(own collective.Algorithm, members []transport.Record, log *zap.Logger) {
	m.known = slices.DeleteFunc(m.known, func(id transport.PeerID) bool {
		return !slices.ContainsFunc(members, func(r transport.Record) bool { return r.Peer == id })
	})
	for _, r := range members {
		theirs := collective.Algorithm(r.Flags >> flock.AlgorithmShift)
		if !flock.Trains(r) || own == collective.Unnamed || theirs == collective.Unnamed || theirs == own || slices.Contains(m.known, r.Peer) {
			continue
		}
		m.known = append(m.known, r.Peer)
		log.Warn("a member trains by another algorithm: the two share nothing, and may wait for each other. Start all peers of a run with the same one",
			zap.String("peer", string(r.Peer)), zap.Stringer("its_algorithm", theirs), zap.Stringer("own_algorithm", own))
	}
}
