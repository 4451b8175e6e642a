package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The sizes of the goals, in values: within a core's cache and far out
// of it. Each round of a benchmark works on at least roundValues.
const (
	cached      = 64 << 10   // 256 KiB
	uncached    = 25_000_000 // 100 MB
	roundValues = 16 * cached
)

// BenchmarkKernels times every kernel beside a copy of as many float32 values in
// turns, and gives the median rate of both in GB of one vector a second, and the
// median of their ratios.
func BenchmarkKernels(b *testing.B) {
	for _, size := range []struct {
		name   string
		values int
	}{{"256KiB", cached}, {"100MB", uncached}} {
		m := benchMemory(size.values)
		for _, r := range runs() {
			b.Run(r.name+"/"+size.name, func(b *testing.B) { beside(b, m, r) })
		}
	}
}

// benchMemory holds values that no kernel makes overflow or vanish, however often
// it runs, where the allocator puts them.
func benchMemory(n int) *memory {
	m := &memory{half: make([]byte, 2*n), full: make([]byte, 4*n), factor: 1}
	random := rand.New(rand.NewPCG(2, 2))
	for _, vector := range []*[]float32{&m.a, &m.b, &m.c, &m.d, &m.e} {
		*vector = make([]float32, n)
		for i := range *vector {
			(*vector)[i] = float32(random.Float64()) * 1e-3
		}
	}
	for _, code := range [][]byte{m.half, m.full} {
		for i := range code {
			code[i] = byte(i) & 0x3f
		}
	}
	return m
}

// TestNoKernelAllocates holds for the functions that choose, too.
func TestNoKernelAllocates(t *testing.T) {
	m, v := benchMemory(1000), exported()
	for _, r := range runs() {
		if allocs := testing.AllocsPerRun(10, func() { r.apply(v, m) }); allocs != 0 {
			t.Errorf("%s: %v allocations", r.name, allocs)
		}
	}
}

func beside(b *testing.B, m *memory, r run) {
	v, n := exported(), len(m.a)
	repeat := max(1, roundValues/n)
	const rounds = 1 << 14 // for which there is room before lists grow
	ours, copies, ratios := make([]float64, 0, rounds), make([]float64, 0, rounds), make([]float64, 0, rounds)
	rate := func(do func()) float64 {
		start := time.Now()
		for range repeat {
			do()
		}
		return float64(4*n*repeat) / float64(time.Since(start).Nanoseconds())
	}
	b.ReportAllocs()
	for b.Loop() {
		kernel := rate(func() { r.apply(v, m) })
		other := rate(func() { copy(m.d, m.e) })
		ours, copies, ratios = append(ours, kernel), append(copies, other), append(ratios, kernel/other)
	}
	for unit, list := range map[string][]float64{"GB/s": ours, "copy-GB/s": copies, "copies": ratios} {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], unit)
	}
}
