package dashboard

import (
	"math"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/topology"
)

// calm is a peer of three whose numbers a test sets.
type calm struct {
	stats   stats.Peer
	members []control.Member
	told    map[transport.PeerID]control.Digest
}

func (c *calm) Stats() stats.Peer { return c.stats }
func (c *calm) Members() []control.Member {
	members := slices.Clone(c.members)
	for i := range members {
		members[i].Digest = c.told[members[i].ID]
		members[i].Steps = max(members[i].Steps, members[i].Digest.Steps)
	}
	return members
}

func newCalm() *calm {
	c := &calm{stats: stats.Peer{Self: "a", Role: "active", Joined: true, Progress: 0.25, FlockSteps: 100, Target: 400, Loss: 1}}
	for i, id := range []transport.PeerID{"a", "b", "c"} {
		role := topology.Passive
		if i == 0 {
			role = topology.Active
		}
		c.members = append(c.members, control.Member{ID: id, Role: role, State: control.Training, Steps: uint64(10 * i)})
	}
	c.told = map[transport.PeerID]control.Digest{
		"a": {Loss: 1, Steps: 5, FlockSteps: 100, Exchanges: 4, ConsensusDistance: 2, Received: time.Now(), Partners: []control.Met{{Partner: "b", Exchanges: 3}}},
		"b": {Loss: math.NaN(), Steps: 7, FlockSteps: 100, Samples: 10, Received: time.Now()},
	}
	return c
}
