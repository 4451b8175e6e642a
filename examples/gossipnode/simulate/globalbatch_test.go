package simulate

import (
	"fmt"
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/peer/peertest"
)

// epochs of a trial: in fewer the models of many peers have hardly met.
const epochs = 1

// curveOf is the loss on held-out data in a run with a global batch, at even progress.
func curveOf(t *testing.T, strategy string, peers, seed int) (losses []float64) {
	t.Helper()
	o := trial(t, fmt.Sprintf("--strategy %s --peers %d --seed %d --model softmax --global-batch 256 --epochs %v --points 5", strategy, peers, seed, epochs), nil)
	for _, p := range o.Curve {
		losses = append(losses, p.TestLoss)
	}
	return losses
}

// TestGlobalBatch: the loss takes the same course with 1, 2, 4 and 8 peers, within what seeds differ by, as all together
// take as many pictures in a step; -v prints the curves.
func TestGlobalBatch(t *testing.T) {
	const seeds = 3
	strategies, flocks := []string{"allreduce", "adpsgd"}, []int{2, 8}
	if *tables {
		strategies, flocks = append(strategies, "dpsgd", "ps-bsp"), []int{2, 4, 8}
	}
	var alone [][]float64
	for seed := range seeds {
		alone = append(alone, curveOf(t, "allreduce", 1, seed))
	}
	t.Logf("1 peer: %.3f", alone)
	for _, peers := range flocks {
		means := map[string][]float64{} // by strategy, of which all take the pictures that are drawn for a seed
		for seed := range seeds {
			for _, strategy := range strategies {
				curve := curveOf(t, strategy, peers, seed)
				if means[strategy] == nil {
					means[strategy] = make([]float64, len(curve))
				}
				for k, loss := range curve {
					means[strategy][k] += loss / seeds
				}
			}
		}
		for _, strategy := range strategies {
			checkCourse(t, fmt.Sprintf("%s with %d peers", strategy, peers), means[strategy], alone)
		}
	}
}

// checkCourse tests that a mean of losses takes the course of one peer alone, within what seeds differ by.
func checkCourse(t *testing.T, name string, mean []float64, alone [][]float64) {
	t.Helper()
	off := 0.0
	for k, loss := range mean {
		var of, spread float64
		for _, one := range alone {
			of += one[k] / float64(len(alone))
		}
		for _, one := range alone {
			spread = max(spread, math.Abs(one[k]-of)/of)
		}
		if difference := math.Abs(loss-of) / of; difference > 0.05+2*spread {
			t.Errorf("%s, point %d: loss %.3f, of one %.3f; its seeds differ by %.1f %%", name, k, loss, of, 100*spread)
		} else {
			off = max(off, difference)
		}
	}
	t.Logf("%s: %.3f, at most %.1f %% from one", name, mean, 100*off)
}

// TestGlobalBatchIsExact: in lock-step all rounds add up, whatever the number of peers and their speeds. The last ones of
// neighbours in lock-step are not of all, since peers that are no neighbours may end a round apart.
func TestGlobalBatchIsExact(t *testing.T) {
	for _, peers := range []int{1, 3, 5} {
		for _, strategy := range []string{"allreduce", "dpsgd", "ps-bsp"} { // of the same pictures, drawn once
			flags := fmt.Sprintf("--strategy %s --peers %d --model softmax --global-batch 100 --steps 30 --points 1", strategy, peers)
			if peers > 1 {
				flags += " --slow 1=3"
			}
			o := trial(t, flags, func(s *peertest.Simulation) { s.Watch.Evaluate = 1 })
			apart := 0.0
			if strategy == "dpsgd" {
				apart = float64(peers / 2)
			}
			if want := uint64(30 * peers); o.Steps != want || math.Abs(float64(o.Samples)-30*100) > apart {
				t.Errorf("%s with %d peers: %d steps, want %d; %d pictures, want 3000", strategy, peers, o.Steps, want, o.Samples)
			}
		}
	}
}
