package replica_test

import (
	"math/rand/v2"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
)

// Parts are apart and together all values; what is loaded, cleared and drained by parts is what is so as a whole.
func TestPartsAreTheWhole(t *testing.T) {
	for _, parts := range []int{1, 2, 3, 8} {
		both := smallAveragers(t, 2)
		whole, cut := both[0], both[1]
		whole.put(t, rand.New(rand.NewPCG(1, 1)), 3)
		cut.put(t, rand.New(rand.NewPCG(1, 1)), 3)
		if err := whole.Load(0, 1, false, false); err != nil {
			t.Fatal(err)
		}
		end := 0
		for part := range parts {
			from, to := cut.Part(part, parts)
			if from != end || to < from {
				t.Errorf("part %d of %d is %d to %d, after %d", part, parts, from, to, end)
			}
			end = to
			if err := cut.Load(part, parts, true, false); err != nil {
				t.Fatal(err)
			}
		}
		if end != cut.Len() {
			t.Errorf("%d parts end at %d of %d", parts, end, cut.Len())
		}
		want, got, all := make(tensor.Vector, cut.Len()), make(tensor.Vector, cut.Len()), make(tensor.Vector, cut.Len())
		whole.Drain(want, 0, 1, 0)
		for part := range parts {
			if part == 1 {
				if cut.Clear(part, parts); cut.Drain(got, part, parts, 0) != 0 {
					t.Errorf("part 1 of %d is not clear", parts)
				}
				if err := cut.Load(part, parts, true, false); err != nil {
					t.Fatal(err)
				}
			}
			from, to := cut.Part(part, parts)
			if cut.Drain(got, part, parts, 0); tensor.SumSquares(got[:from]) != 0 || tensor.SumSquares(got[to:]) != 0 {
				t.Errorf("part %d of %d reaches beyond %d to %d", part, parts, from, to)
			}
			tensor.Add(all, got)
		}
		if apart := tensor.SquaredDistance(sharedOf(all), sharedOf(want)); apart != 0 || tensor.SumSquares(sharedOf(want)) == 0 {
			t.Errorf("%d parts are %g apart from the whole", parts, apart)
		}
	}
}
