package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// logits are as those of models that are unsure, sure, and very sure.
func logits(random *rand.Rand, n int) []float32 {
	x, wide := make([]float32, n), [...]float64{1, 10, 60}[random.IntN(3)]
	for i := range x {
		x[i] = float32(random.NormFloat64() * wide)
	}
	return x
}

// softmax64 is the oracle, of values that are rounded as the kernel's.
func softmax64(row []float32, factor float32) (p []float64, most, sum float64) {
	p, most = make([]float64, len(row)), math.Inf(-1)
	for _, v := range row {
		most = max(most, float64(v*factor))
	}
	for i, v := range row {
		p[i] = math.Exp(float64(v*factor) - most)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p, most, sum
}

func within(t *testing.T, what string, got []float32, want func(i int) float64, bound float64) {
	t.Helper()
	for i, g := range got {
		if w := want(i); !(math.Abs(float64(g)-w) <= bound) {
			t.Errorf("%s: value %d is %v, want %v within %.2g", what, i, g, w, bound)
			return
		}
	}
}

// TestSoftmaxIsNear: of all values, or of one more in each row, with all else 0.
func TestSoftmaxIsNear(t *testing.T) {
	forDense(t, func(t *testing.T, v rowVariant, rows, n int, random *rand.Rand) {
		const factor, scale = 0.25, 0.5
		for _, kept := range []int{n, 1 + random.IntN(n)} {
			x0, stats := logits(random, rows*n), make([]float64, 2*rows)
			x, check := guarded(t, x0)
			v.softmaxRows(x, stats, rows, n, kept, factor, scale)
			check()
			for r := range rows {
				k := min(kept+r, n)
				p, most, sum := softmax64(x0[r*n:][:k], factor)
				p = append(p, make([]float64, n-k)...)
				within(t, "SoftmaxCausal", x[r*n:][:n], func(i int) float64 { return scale * p[i] }, 2e-6)
				if stats[2*r] != most || math.Abs(stats[2*r+1]/sum-1) > 1e-6 {
					t.Errorf("largest and sum %v, want %v and %v", stats[2*r:][:2], most, sum)
				}
				checkSoftmaxGradient(t, v, x[r*n:][:n], k, random)
			}
			plain, plainStats := slices.Clone(x0), make([]float64, 2*rows)
			softmaxRowsGo(plain, plainStats, rows, n, kept, factor, scale)
			sameBits(t, "SoftmaxCausal beside its twin", x, func(i int) float64 { return float64(plain[i]) })
			if !slices.Equal(stats, plainStats) {
				t.Errorf("stats %v, of the twin %v", stats, plainStats)
			}
		}
	})
}

func checkSoftmaxGradient(t *testing.T, v rowVariant, p []float32, kept int, random *rand.Rand) {
	n := len(p)
	g0 := logits(random, n)
	grad, check := guarded(t, g0)
	v.softmaxRowsGradient(grad, p, 1, n, kept, 0.25)
	check()
	dot, size := 0.0, 1.0
	for i := range kept {
		dot += float64(p[i]) * float64(g0[i])
		size = max(size, math.Abs(float64(g0[i])))
	}
	within(t, "SoftmaxCausalGradient", grad, func(i int) float64 {
		if i >= kept {
			return 0
		}
		return float64(p[i]) * (float64(g0[i]) - dot) * 0.25
	}, 2e-7*size)
	plain := slices.Clone(g0)
	softmaxRowsGradientGo(plain, p, 1, n, kept, 0.25)
	sameBits(t, "SoftmaxCausalGradient beside its twin", grad, func(i int) float64 { return float64(plain[i]) })
}

// TestSoftmaxOfOddRows: negligible values are 0, and what cannot be normalized is NaN.
func TestSoftmaxOfOddRows(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	onAllRows(t, func(t *testing.T, v rowVariant) {
		for n := 1; n < 70; n++ {
			softmax := func(x []float32) { v.softmaxRows(x, nil, 1, n, n, 1, 1) }
			for at := range n {
				x := slices.Repeat([]float32{-27.7}, n)
				x[at] = 0
				softmax(x)
				for i, p := range x {
					if p != 0 && i != at || i == at && p != 1 {
						t.Fatalf("the share of value %d of %d is %v, and that of %d is nearly all", i, n, p, at)
					}
				}
				for _, odd := range []float32{nan, inf} {
					x[at] = odd
					softmax(x)
					sameNumbers(t, "odd", x, func(int) float64 { return math.NaN() })
					clear(x)
				}
				x[at] = -inf
				softmax(x)
				if n > 1 && x[at] != 0 {
					t.Errorf("negative infinity gives %v", x[at])
				}
			}
		}
	})
}

// TestSoftmaxInPieces: a matrix of several calls, whose triangle goes on over them.
func TestSoftmaxInPieces(t *testing.T) {
	const n, rows = rowsPiece / 32, 70
	random := rand.New(rand.NewPCG(3, 3))
	x0 := logits(random, n*rows)
	for _, before := range []int{0, 200, n - 1} {
		x, g := slices.Clone(x0), slices.Clone(x0)
		SoftmaxCausal(x, n, before, 0.1)
		SoftmaxCausalGradient(g, x, n, before, 0.1)
		for r := range rows {
			k := min(r+1+before, n)
			row, grad := slices.Clone(x0[r*n:][:k]), slices.Clone(x0[r*n:][:k])
			SoftmaxCausal(row, k, k-1, 0.1)
			SoftmaxCausalGradient(grad, row, k, k-1, 0.1)
			rest := make([]float32, n-k)
			if !slices.Equal(x[r*n:][:n], append(row, rest...)) || !slices.Equal(g[r*n:][:n], append(grad, rest...)) {
				t.Fatalf("row %d of a triangle is not that of %d values", r, k)
			}
		}
	}
}

func TestCrossEntropyIsNear(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	for n := 1; n <= maxLength; n++ {
		const scale = 1.0 / 64
		x0, label := logits(random, n), random.IntN(n)
		p, most, sum := softmax64(x0, 1)
		row, check := guarded(t, x0)
		loss := CrossEntropy(row, label, scale)
		check()
		if want := most + math.Log(sum) - float64(x0[label]); math.Abs(loss-want) > 2e-6*max(1, want) {
			t.Fatalf("%d classes: %v, want %v", n, loss, want)
		}
		p[label]--
		within(t, "CrossEntropy", row, func(i int) float64 { return p[i] * scale }, 2e-6*scale)
	}
}
