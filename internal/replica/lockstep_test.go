package replica_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/topology"
)

// TestLockStepGivesAllTheMean takes the links of an overlay of equal classes in lock-step,
// those of offsets 0, 1, 2, 4, … and 0 again: after log₂ n + 1 exchanges each, all
// replicas hold the mean, as far as float32 can.
func TestLockStepGivesAllTheMean(t *testing.T) {
	const most = 1e-12 // of the variance
	for _, n := range []int{8, 16, 64} {
		rng := rand.New(rand.NewPCG(uint64(n), 0))
		sides := make(map[topology.PeerID]*side)
		var members []topology.Member
		for i := range n {
			id := topology.PeerID(fmt.Sprint(i))
			members = append(members, topology.Member{ID: id})
			sides[id] = newSide(t, smallModel(t, rng, nil), replica.Options{Unclipped: true})
		}
		view, err := topology.NewView(members)
		if err != nil {
			t.Fatal(err)
		}
		overlay, err := topology.NewOverlay(view)
		if err != nil {
			t.Fatal(err)
		}
		links := []int{0} // places among the neighbours, which go back at even ones
		for offset, k := 1, 1; offset < n/2; offset, k = 2*offset, k+2 {
			links = append(links, k)
		}
		links = append(links, 0)
		before, number := sharedVariance(sides), uint64(0)
		for _, k := range links {
			for _, m := range view.Members() {
				if m.Role != topology.Active {
					continue
				}
				number++
				terms := replica.Terms{Plan: coding.Uniform(codec(t, "raw")), Window: 2, Exchange: number}
				begin(t, sides[m.ID], sides[overlay.Neighbours(m.ID)[k]], terms).finish()
			}
		}
		left := sharedVariance(sides) / before
		t.Logf("n = %d: %.2g of the variance is left after %d rounds", n, left, len(links))
		if left > most {
			t.Errorf("n = %d: %.2g of the variance is left, want at most %g", n, left, most)
		}
		if rounds := bits.Len(uint(n)); len(links) != rounds {
			t.Errorf("n = %d: %d rounds, want log₂ n + 1 = %d", n, len(links), rounds)
		}
	}
}

// sharedVariance is that of the values that exchanges move.
func sharedVariance(sides map[topology.PeerID]*side) (variance float64) {
	var sum []float64
	for _, s := range sides {
		values := contents(s.Replica)
		if sum == nil {
			sum = make([]float64, len(values))
		}
		for i, v := range values {
			sum[i] += float64(v) / float64(len(sides))
		}
	}
	for _, s := range sides {
		for i, v := range contents(s.Replica) {
			if i < frozenFrom || i >= sharedFrom {
				variance += (float64(v) - sum[i]) * (float64(v) - sum[i])
			}
		}
	}
	return variance
}
