package kernel

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestEqualsTheTwin compares every kernel of every variant with its twin, bit
// for bit and around the slices too: for every length to maxLength, and for some
// that are long enough for a kernel to align itself first, or to walk in several
// strands, at distances from the start of a line that differ for each slice.
func TestEqualsTheTwin(t *testing.T) {
	onAll(t, func(t *testing.T, v variant) {
		if v.name == plainGo().name {
			return // the twin itself
		}
		for n := range maxLength + 1 {
			for _, offset := range []int{n % lineSize, (n/2 + 31) % lineSize} {
				compare(t, v, n, offset)
			}
		}
		for offset := range lineSize {
			compare(t, v, 1024+13*(offset%8), offset)
		}
		for _, offset := range []int{0, 4, 13} {
			compare(t, v, 4*15616+64+offset, offset)
		}
	})
}

// TestPieces: slices longer than one call's work are done to their end.
func TestPieces(t *testing.T) {
	for _, n := range []int{1 << 16, 1<<16 + 1, 1<<17 + 77} {
		compare(t, exported(), n, n%lineSize)
	}
}

// TestPastTheCache: vectors that are too large for the cache are written to their
// end too, from any address.
func TestPastTheCache(t *testing.T) {
	const n = 1<<22 + 4711
	x, got, want := make([]float32, n), make([]float32, n+3), make([]float32, n)
	for i := range x {
		x[i] = float32(i%100_003) * 1e-3
	}
	code, wantCode := make([]byte, 2*n+1), make([]byte, 2*n)
	for _, offset := range []int{0, 1} {
		code, got := code[offset:2*n+offset], got[3*offset:n+3*offset]
		BF16Encode(code, x)
		bf16EncodeGo(wantCode, x)
		if !bytes.Equal(code, wantCode) {
			t.Error("BF16Encode differs from its twin")
		}
		for _, c := range []struct {
			name      string
			run, twin func()
		}{
			{"BF16Decode", func() { BF16Decode(got, code) }, func() { bf16DecodeGo(want, code) }},
			{"FP16Decode", func() { FP16Decode(got, code) }, func() { fp16DecodeGo(want, code) }},
			{"ScaledDifference", func() { ScaledDifference(got, 0.5, x, got) }, func() { scaledDifferenceGo(want, 0.5, x, want) }},
		} {
			c.run()
			c.twin()
			if !slices.Equal(got, want) {
				t.Errorf("%s differs from its twin", c.name)
			}
		}
	}
}

// compare runs all kernels on n values, finite ones first.
func compare(t *testing.T, v variant, n, offset int) {
	t.Helper()
	twin := plainGo()
	random := rand.New(rand.NewPCG(uint64(n), uint64(offset)))
	initial, got, want := newMemory(n, offset), newMemory(n, offset), newMemory(n, offset)
	for _, finite := range []bool{true, false} {
		initial.fill(random, finite)
		for _, r := range runs() {
			got.copyFrom(initial)
			want.copyFrom(initial)
			g, w := r.apply(v, got), r.apply(twin, want)
			sameMemory(t, got, want)
			if !sameResults(g, w, r.sum, magnitude(initial)) {
				t.Errorf("result %v, want %v", g, w)
			}
			if t.Failed() {
				t.Fatalf("%s of %d values at %d (finite: %v)", r.name, n, offset, finite)
			}
		}
	}
}

func sameResults(got, want [2]float64, sum bool, magnitude float64) bool {
	for i, g := range got {
		w := want[i]
		switch {
		case math.IsNaN(g) && math.IsNaN(w):
		case math.Float64bits(g) == math.Float64bits(w):
		case sum && math.Abs(g-w) <= 1e-12*max(magnitude, math.Abs(w)):
		default:
			return false
		}
	}
	return true
}

// magnitude bounds the sum of the magnitudes of the terms of every reduction. It
// is 0 if some are not finite: a sum that is finite all the same is of squares.
func magnitude(m *memory) float64 {
	total := 0.0
	for i, a := range m.a {
		size := math.Abs(float64(a)) + math.Abs(float64(m.b[i]))
		total += size * size
	}
	if math.IsNaN(total) || math.IsInf(total, 0) {
		return 0
	}
	return total
}
