package replica_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// shared runs of values of the small model lie before or after what is apart, which is from 210 to 217.
func drawRun(t *rapid.T, values int) (first, count int) {
	if rapid.Bool().Draw(t, "before what is apart") {
		first = rapid.IntRange(0, 209).Draw(t, "first")
		return first, rapid.IntRange(1, 210-first).Draw(t, "count")
	}
	first = rapid.IntRange(217, values-1).Draw(t, "first")
	return first, rapid.IntRange(1, values-first).Draw(t, "count")
}

// Whatever is added for runs of values, each value of the mean is that of its own weights, and a given weight divides it all.
func TestValuesCountByTheirOwnWeight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := smallAveragers(t, 1)[0]
		n, mean := a.Len(), make(tensor.Vector, a.Len())
		sums, weights := make([]float64, n), make([]float64, n)
		for range rapid.IntRange(1, 3).Draw(t, "rounds") {
			clear(sums)
			clear(weights)
			if rapid.Bool().Draw(t, "a whole gradient") {
				gradient := a.put(t, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), 4)
				if err := a.Load(0, 1, true, false); err != nil {
					t.Fatal(err)
				}
				for i, g := range gradient {
					sums[i], weights[i] = 4*float64(g), 4
				}
			}
			for range rapid.IntRange(0, 4).Draw(t, "pushes") {
				first, count := drawRun(t, n)
				samples, gradient := rapid.IntRange(1, 4).Draw(t, "samples"), make(tensor.Vector, count)
				for i := range gradient {
					gradient[i] = float32(i%17 - 8)
					sums[first+i] += float64(samples) * float64(gradient[i])
					weights[first+i] += float64(samples)
				}
				if err := a.Run(first, count).AddGradient(gradient, float64(samples)); err != nil {
					t.Fatal(err)
				}
			}
			given := rapid.SampledFrom([]float64{0, 0, 8}).Draw(t, "weight")
			a.Drain(mean, 0, 1, given)
			for i, got := range mean {
				if i >= 210 && i < 217 {
					continue
				}
				want := sums[i]
				if w := max(weights[i], given); given > 0 || w > 0 {
					want /= map[bool]float64{true: given, false: w}[given > 0]
				}
				if math.Abs(float64(got)-want) > 1e-5*(1+math.Abs(want)) {
					t.Fatalf("value %d is %g, want %g: a sum of %g, of weight %g, divided by %g", i, got, want, sums[i], weights[i], given)
				}
			}
		}
	})
}

// What no member can send changes nothing, and a part that is cleared forgets what was added for its values.
func TestValuesThatCannotBe(t *testing.T) {
	a := smallAveragers(t, 1)[0]
	mean, fine := make(tensor.Vector, a.Len()), tensor.Vector{1, 1}
	huge, odd := tensor.Vector{1, 1e20}, tensor.Vector{1, float32(math.Inf(1))}
	for what, err := range map[string]error{
		"huge": a.Run(0, 2).AddGradient(huge, 1), "not finite": a.Run(0, 2).AddGradient(odd, 1), "of no samples": a.Run(0, 2).AddGradient(fine, 0),
		"of too many samples": a.Run(0, 2).AddGradient(fine, 2*wire.MaxWeight),
	} {
		if !errors.Is(err, replica.ErrImplausible) {
			t.Errorf("a gradient that is %s: %v", what, err)
		}
	}
	if a.Drain(mean, 0, 1, 0); tensor.SumSquares(mean) != 0 {
		t.Errorf("they have changed the sum to %v", mean)
	}
	if err := a.Run(0, 2).AddGradient(fine, 1); err != nil {
		t.Fatal(err)
	}
	a.Clear(0, 2)
	if err := a.Run(0, 2).AddGradient(fine, 3); err != nil {
		t.Fatal(err)
	}
	if a.Drain(mean, 0, 2, 0); mean[0] != 1 || mean[1] != 1 || mean[2] != 0 {
		t.Errorf("after a clear the mean of one gradient of ones is %v", mean[:3])
	}
	got := make(tensor.Vector, 3)
	if a.Run(208, 2).Read(got[:2]); a.Run(208, 3).Shared() || !a.Run(208, 2).Shared() || !a.Run(217, a.Len()-217).Shared() || a.Run(217, a.Len()).Shared() {
		t.Error("what is shared is not told from what is not")
	}
}
