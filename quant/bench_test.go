package quant

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/tensor"
)

const (
	benchSlice = 64 << 10 // values, the largest slice that the network takes
	benchApart = 0.01     // distance between the two models, relative to their length
)

// benchPair is two models some distance apart, and room for what a codec makes of them.
type benchPair struct {
	codec                   Codec
	active, passive, target tensor.Vector
	code, diff              []byte // of all slices
	frame                   []byte // of one slice: a lane writes the next to the same memory
	scratch                 tensor.Vector
	ranges                  [][]float32 // by slice, of lattices
	sizes                   []int       // of the slices' codes
}

func newBenchPair(tb testing.TB, name string, n int) *benchPair {
	tb.Helper()
	codec, err := ByName(name)
	if err != nil {
		tb.Fatal(err)
	}
	slices := (n + benchSlice - 1) / benchSlice
	p := &benchPair{
		codec: codec, active: make(tensor.Vector, n), passive: make(tensor.Vector, n), target: make(tensor.Vector, n),
		code: make([]byte, slices*codec.MaxSize(benchSlice)), diff: make([]byte, slices*codec.DiffSize(benchSlice)),
		frame: make([]byte, codec.MaxSize(benchSlice)), scratch: make(tensor.Vector, benchSlice),
		ranges: make([][]float32, slices), sizes: make([]int, slices),
	}
	source := rand.New(rand.NewPCG(1, 2))
	for i := range p.active {
		p.active[i] = 0.1 * (source.Float32() - 0.5)
	}
	size := tensor.Norm2(p.active) / math.Sqrt(float64(n)) * benchApart
	for i, v := range p.active {
		p.passive[i] = v + float32(size*source.NormFloat64())
	}
	copy(p.target, p.passive)
	for i := range p.ranges {
		if codec.Lattice() {
			p.ranges[i] = p.apart(i)
		}
	}
	p.encode(true)
	p.answer(tb)
	p.apply(tb)
	return p
}

func (p *benchPair) slice(v tensor.Vector, i int) tensor.Vector {
	return v[i*benchSlice : min((i+1)*benchSlice, len(v))]
}

// apart is how far apart the models are in each block of a slice, as peers know that have
// exchanged before.
func (p *benchPair) apart(i int) (ranges []float32) {
	difference := slices.Clone(p.slice(p.active, i))
	tensor.Sub(difference, p.slice(p.passive, i))
	for block := range slices.Chunk(difference, BlockLen) {
		ranges = append(ranges, tensor.MaxAbs(block))
	}
	return ranges
}

// encode makes the active side's slices to CODEs, which are kept for the steps after it, or
// written one over the other, as a lane of an exchange does.
func (p *benchPair) encode(keep bool) {
	rest := p.code
	for i := range p.sizes {
		to := p.frame
		if keep {
			to = rest
		}
		p.sizes[i] = p.codec.Encode(to, p.slice(p.active, i), p.ranges[i])
		rest = rest[p.sizes[i]:]
	}
}

// answer makes the codes to half their difference from the passive side's own slices.
func (p *benchPair) answer(tb testing.TB) {
	code, diff := p.code, p.diff
	for i, size := range p.sizes {
		own := p.slice(p.passive, i)
		back := p.codec.DiffSize(len(own))
		if err := p.codec.Answer(diff[:back], code[:size], own, p.scratch[:len(own)], 0.5); err != nil {
			tb.Fatal(err)
		}
		code, diff = code[size:], diff[back:]
	}
}

// apply adds those differences to the target.
func (p *benchPair) apply(tb testing.TB) {
	diff := p.diff
	for i := range p.sizes {
		to := p.slice(p.target, i)
		back, values := p.codec.DiffSize(len(to)), p.scratch[:len(to)]
		if err := p.codec.DecodeDiff(values, diff[:back]); err != nil {
			tb.Fatal(err)
		}
		tensor.Add(to, values)
		diff = diff[back:]
	}
}

// bits are those of a parameter in either direction, headers of blocks included.
func (p *benchPair) bits() (there, back float64) {
	for i, size := range p.sizes {
		there += float64(8 * size)
		back += float64(8 * p.codec.DiffSize(len(p.slice(p.active, i))))
	}
	n := float64(len(p.active))
	return there / n, back / n
}

// relativeError is that of the difference which has been applied once, relative to its length.
func (p *benchPair) relativeError() float64 {
	wrong, whole := 0.0, 0.0
	for i, own := range p.passive {
		want := 0.5 * (float64(p.active[i]) - float64(own))
		got := float64(p.target[i]) - float64(own)
		wrong, whole = wrong+(got-want)*(got-want), whole+want*want
	}
	return math.Sqrt(wrong / whole)
}

// BenchmarkCodecs measures what each codec of an exchange costs, on one core and slice by
// slice, each step in turn with Go's copy of as many values, of which it gives the median ratio
// (copies); and what it yields: bits a parameter there and back, and the error of the difference.
func BenchmarkCodecs(b *testing.B) {
	for _, name := range Names() {
		for _, bytes := range []int{256 << 10, 100_000_000} {
			b.Run(fmt.Sprintf("%s/%dKiB", name, bytes>>10), func(b *testing.B) {
				p := newBenchPair(b, name, bytes/tensor.ValueSize)
				there, back := p.bits()
				wrong := p.relativeError()
				for _, step := range []struct {
					name string
					pass func()
				}{{"encode", func() { p.encode(false) }}, {"answer", func() { p.answer(b) }}, {"apply", func() { p.apply(b) }}} {
					b.Run(step.name, func(b *testing.B) {
						besideCopy(b, p, step.pass)
						b.ReportMetric(there, "bits-there")
						b.ReportMetric(back, "bits-back")
						b.ReportMetric(wrong, "error")
					})
				}
			})
		}
	}
}

// besideCopy takes turns with a copy of the model.
func besideCopy(b *testing.B, p *benchPair, pass func()) {
	b.SetBytes(int64(tensor.ValueSize * len(p.active)))
	b.ReportAllocs()
	target := make(tensor.Vector, len(p.active))
	ratios := make([]float64, 0, 1<<16) // for which there is room before the list grows
	timed := func(do func()) float64 {
		began := time.Now()
		do()
		return float64(max(time.Since(began), 1))
	}
	for b.Loop() {
		ours := timed(pass)
		ratios = append(ratios, timed(func() { copy(target, p.active) })/ours)
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "copies")
}

// TestCodecsYieldWhatTheyPromise shows the sizes that the formats have, that coarse codes of
// models a hundredth apart leave little and lattices a share, and that no step allocates.
func TestCodecsYieldWhatTheyPromise(t *testing.T) {
	bits := map[string][2]float64{
		"raw": {32, 32}, "bf16": {16, 16}, "fp16": {16, 16}, "int8": {8.03125, 8.03125},
		"lattice8+4": {8.0625, 4.03125}, "lattice6+4": {6.0625, 4.03125}, "lattice4+1": {4.0625, 1.03125},
	}
	most := map[string]float64{"raw": 1e-4, "fp16": 0.05, "int8": 1, "lattice8+8": 0.05, "lattice6+4": 0.2, "lattice4+1": 0.8}
	for _, name := range Names() {
		p := newBenchPair(t, name, 3*benchSlice)
		there, back := p.bits()
		if want, ok := bits[name]; ok && want != [2]float64{there, back} {
			t.Errorf("%s: %v and %v bits, want %v", name, there, back, want)
		}
		if e := p.relativeError(); !(e > 0 && e < 1) || most[name] > 0 && e > most[name] {
			t.Errorf("%s: error %v, want at most %v", name, e, most[name])
		}
		if allocs := testing.AllocsPerRun(9, func() { p.encode(false); p.encode(true); p.answer(t); p.apply(t) }); allocs != 0 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}
