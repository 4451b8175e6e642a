package train

import (
	"cmp"
	"slices"

	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// maxSpeed bounds how much faster or slower than the median a member counts as, whatever it tells.
const maxSpeed = 4

// ownBatch is the batch that this peer takes if its algorithm gives it none.
func ownBatch(t *training) int {
	if t.GlobalBatch == 0 {
		return t.Batch
	}
	if t.share == 0 {
		t.share = shareOf(t.GlobalBatch, t.peer.Members(), t.peer.Self())
	}
	return t.share
}

// shareOf is the part of a global batch for a member: by the speeds that those which train have told, and evenly among
// those that have told none. All members that have heard the same find parts that add up to the batch.
func shareOf(global int, members []control.Member, self transport.PeerID) int {
	var speeds, told []float64
	own := 0
	for _, m := range members {
		if m.State == control.Idle && m.ID != self {
			continue
		}
		if m.ID == self {
			own = len(speeds)
		}
		if speeds = append(speeds, m.Samples); m.Samples > 0 {
			told = append(told, m.Samples)
		}
	}
	if len(told) > 0 {
		slices.Sort(told)
		median := told[len(told)/2]
		for i, v := range speeds {
			speeds[i] = min(max(cmp.Or(v, median), median/maxSpeed), median*maxSpeed)
		}
	}
	if len(speeds) == 0 {
		return global
	}
	return baseline.Shares(global, speeds)[own]
}
