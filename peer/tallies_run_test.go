package peer_test

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/quant"
)

func total(counts map[string]uint64) (sum uint64) {
	for n := range maps.Values(counts) {
		sum += n
	}
	return sum
}

// TestTallies shows that what is told apart adds up to what is counted together, and
// that a peer knows the members.
func TestTallies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		flock := peertest.Start(t, peertest.Config{Peers: 5, Params: newModel, Link: memnet.Link{Delay: time.Millisecond}, Configure: func(i int, c *peer.Config) {
			shortRun(i, c)
			c.Training.Exchange.Codec = quant.Policy{Codec: "lattice8+4"}
		}})
		flock.Train(t.Context(), atPace(10*time.Millisecond, towards))
		time.Sleep(time.Second) // records of the end go round
		for i, p := range flock.Peers {
			s, c := p.Stats().Exchanges, p.Counters()
			if total(c.Refused) != s.Refused || total(c.Declined) != s.Declined || total(c.Failed)+total(c.Dropped) != s.Failed {
				t.Errorf("peer %d: %+v do not add up to %+v", i, c, s)
			}
			if durations := c.Durations; durations.Count() != s.Completed() || durations.Sum <= 0 {
				t.Errorf("peer %d: %d durations of %d exchanges, %s in all", i, durations.Count(), s.Completed(), durations.Sum)
			}
			if c.Rounds.Count() < s.Initiated || c.Samples != p.Stats().Steps {
				t.Errorf("peer %d: %d round trips of %d exchanges, %d samples", i, c.Rounds.Count(), s.Initiated, c.Samples)
			}
			if late := total(agesOf(c.Age)); late != s.Completed() {
				t.Errorf("peer %d: %d ages of %d exchanges", i, late, s.Completed())
			}
			var sent, received uint64
			for _, moved := range c.Traffic {
				sent, received = sent+moved.Sent, received+moved.Received
			}
			if sent != s.BytesSent || received != s.BytesReceived || c.Traffic["lattice8+4"].Sent == 0 {
				t.Errorf("peer %d: traffic %v adds up to %d and %d, not %d and %d", i, c.Traffic, sent, received, s.BytesSent, s.BytesReceived)
			}
			members := p.Members()
			sorted := slices.IsSortedFunc(members, func(a, b control.Member) int { return cmp.Compare(a.ID, b.ID) })
			if len(members) != 5 || !sorted {
				t.Errorf("peer %d sees %+v", i, members)
			}
			for _, m := range members {
				if m.State != control.Over || !m.Role.Valid() || m.Steps == 0 {
					t.Errorf("peer %d sees %+v", i, m)
				}
			}
		}
	})
}

func agesOf(a stats.Ages) map[string]uint64 {
	counts := make(map[string]uint64)
	for i, n := range a.Counts {
		counts[string(rune('a'+i))] = n
	}
	return counts
}
