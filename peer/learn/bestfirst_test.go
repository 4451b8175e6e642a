package learn

import (
	"math/rand/v2"
	"testing"
)

// What keep leaves of a tree that was split ahead are the splits of bestFirst: none of its leaves gains more than the
// last of them, and each node keeps its own rows and sums.
func TestKeptSplitsAreTheBest(t *testing.T) {
	chance := rand.New(rand.NewPCG(3, 5))
	for range 200 {
		tr := &tree{grad: &gradients{outputs: 1}, nodes: []node{{}}, sums: []float64{0, 0, 0}}
		for id := 0; id < len(tr.nodes) && len(tr.nodes) < 60; id++ {
			tr.nodes[id].split.gain = chance.Float64() * float64(chance.IntN(4))
			if tr.nodes[id].split.gain > 0 && chance.IntN(5) > 0 {
				left := int32(len(tr.nodes))
				tr.nodes[id].left, tr.nodes[id].right = left, left+1
				for i := range int32(2) {
					tr.nodes = append(tr.nodes, node{from: left + i})
					tr.sums = append(tr.sums, float64(left+i), 0, 0)
				}
			}
		}
		chosen, unknown := tr.bestFirst(1 + chance.IntN(12))
		if len(unknown) > 0 { // their children would have come
			continue
		}
		last := 0.0
		if len(chosen) > 0 {
			last = tr.nodes[chosen[len(chosen)-1]].split.gain
		}
		tr.keep(chosen)
		if len(tr.nodes) != 2*len(chosen)+1 {
			t.Fatalf("%d nodes for %d splits", len(tr.nodes), len(chosen))
		}
		splits := 0
		for id, n := range tr.nodes {
			if tr.sums[3*id] != float64(n.from) {
				t.Errorf("node %d has the sums of another", id)
			}
			if n.left != 0 {
				splits++
			} else if id < len(tr.nodes)-2 && n.split.gain > last { // not a child of the last split
				t.Errorf("a leaf gains %v, and the last split %v", n.split.gain, last)
			}
		}
		if splits != len(chosen) {
			t.Errorf("%d splits of %d", splits, len(chosen))
		}
	}
}
