package replica_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/tensor"
)

// scaled is a model of three slices of so many values, each slice about as large as its
// power of two, and each value apart from the other model's by a share of that.
func scaled(t *rapid.T, powers []int, apart []float64, length int, seed uint64) *side {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{len(powers) * length}})
	if err != nil {
		t.Fatal(err)
	}
	params := tensor.NewParams(layout)
	for i := range params.Vector() {
		of := i / length
		wave := math.Sin(float64(i) + 0.1)
		other := math.Sin(float64(i)*float64(seed) + float64(seed))
		params.Vector()[i] = float32(math.Ldexp(wave+apart[of]*other, powers[of]))
	}
	return newSide(t, params, replica.Options{SliceLen: length})
}

// TestHonestReplicasNeverBlameEachOther: however large or small the values and their
// differences are, and whatever the codec, no side finds fault with the other's frames,
// and the models end no farther apart than they were.
func TestHonestReplicasNeverBlameEachOther(t *testing.T) {
	for _, name := range coding.Names() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				length := rapid.SampledFrom([]int{1, 5, 300, 1100}).Draw(t, "length")
				powers := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(-149, 110), rapid.IntRange(-30, 20)), 3, 3).Draw(t, "powers")
				apart := make([]float64, len(powers))
				for i := range apart {
					apart[i] = math.Exp2(float64(rapid.IntRange(-30, 1).Draw(t, "apart")))
				}
				a, p := scaled(t, powers, apart, length, 2), scaled(t, powers, apart, length, 3)
				terms := replica.Terms{Plan: coding.Uniform(codec(t, name)), Window: 2, Overlap: rapid.IntRange(1, 3).Draw(t, "overlap")}
				for range 6 {
					terms.Exchange++
					begin(t, a, p, terms).finish() // fails if a side blames the other
					a, p = p, a
				}
				if !tensor.Finite(contents(a.Replica)) || !tensor.Finite(contents(p.Replica)) {
					t.Fatal("values are not finite any more")
				}
			})
		})
	}
}
