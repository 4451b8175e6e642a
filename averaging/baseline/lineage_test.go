package baseline

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/topology"
)

// Each claim to the seat begins a lineage of its own, or models that differ would be taken
// for the same at equal rounds.
func TestClaimsBeginLineagesOfTheirOwn(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := seat{self: topology.PeerID(rapid.String().Draw(r, "self")), lineage: rapid.Uint64().Draw(r, "lineage")}
		seen := map[uint64]uint64{}
		for count := range uint64(50) {
			lineage := s.next(count)
			if former, twice := seen[lineage]; twice || lineage == 0 {
				r.Fatalf("claims %d and %d begin the lineage %d", former, count, lineage)
			}
			seen[lineage] = count
		}
	})
}
