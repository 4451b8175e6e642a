package bench

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// modelPair is two models some distance apart, and room for what codecs make of them.
type modelPair struct {
	active, passive tensor.Vector
	target          tensor.Vector // to copy to, and to apply differences to
	code, diff      []byte        // of all slices
	frame           []byte        // of one slice: a lane writes the next to the same memory
	scratch         tensor.Vector // a slice
}

// codecSlice is how many values a codec is given at a time: the largest slice that
// the network takes.
const codecSlice = maxSlice

// half is the share of a difference by which both sides move.
const half = 0.5

func newModelPair(n int, seed uint64, apart float64) *modelPair {
	p := &modelPair{
		active: make(tensor.Vector, n), passive: make(tensor.Vector, n), target: make(tensor.Vector, n),
		code: make([]byte, (n+codecSlice-1)/codecSlice*maxCode()), diff: make([]byte, tensor.ValueSize*n),
		frame:   make([]byte, maxCode()),
		scratch: make(tensor.Vector, min(n, codecSlice)),
	}
	fillValues(p.active, seed, 1)
	size := tensor.Norm2(p.active) / math.Sqrt(float64(n)) * apart
	source := rand.New(rand.NewPCG(seed, 2))
	for i, v := range p.active {
		p.passive[i] = v + float32(size*source.NormFloat64())
	}
	copy(p.target, p.passive)
	return p
}

// maxCode is the most bytes that a codec makes of a slice.
func maxCode() int { return 2 * tensor.ValueSize * codecSlice }

func (p *modelPair) slices() int { return (len(p.active) + codecSlice - 1) / codecSlice }

// copied is the reference.
func (p *modelPair) copied() kernel {
	return kernel{"copy", func() { copy(p.target, p.active) }}
}

// codecSteps are the three steps of an exchange of all slices.
type codecSteps struct {
	kernels []kernel
	figure  codecFigure
}

// sliceCodec is a codec's share in a slice, which is that of a lattice or not.
type sliceCodec interface {
	// encode writes the code of a slice and returns its length.
	encode(dst []byte, slice int, x tensor.Vector) int
	answer(diff, code []byte, slice int, own tensor.Vector) error
}

// exchange prepares the steps of a codec, and does each once: so they have codes to
// work on, which a measured encode does not keep, and an error shows.
func (p *modelPair) exchange(name string) (steps codecSteps, err error) {
	codec, err := quant.ByName(name)
	if err != nil {
		return steps, fmt.Errorf("measuring a codec: %w", err)
	}
	adder, ok := codec.Diff.(quant.Adder)
	if !ok {
		return steps, fmt.Errorf("measuring codec %s: its differences cannot be added", name)
	}
	var slicer sliceCodec = simpleSlices{codec, p.scratch}
	if codec.Lattice != (quant.Lattice{}) {
		slicer = p.latticeSlices(codec.Lattice)
	}
	sizes := make([]int, p.slices())
	encode := func(keep bool) {
		rest := p.code
		for i := range sizes {
			to := p.frame
			if keep {
				to = rest
			}
			sizes[i] = slicer.encode(to, i, p.slice(p.active, i))
			rest = rest[sizes[i]:]
		}
	}
	answer := func() {
		code, diff := p.code, p.diff
		for i, size := range sizes {
			own := p.slice(p.passive, i)
			back := codec.Diff.Size(len(own))
			if e := slicer.answer(diff[:back], code[:size], i, own); e != nil && err == nil {
				err = fmt.Errorf("measuring codec %s: slice %d: %w", name, i, e)
			}
			code, diff = code[size:], diff[back:]
		}
	}
	apply := func() {
		diff := p.diff
		for i := range sizes {
			to := p.slice(p.target, i)
			back := codec.Diff.Size(len(to))
			if e := adder.Add(to, diff[:back]); e != nil && err == nil {
				err = fmt.Errorf("measuring codec %s: applying slice %d: %w", name, i, e)
			}
			diff = diff[back:]
		}
	}
	copy(p.target, p.passive)
	encode(true)
	answer()
	apply()
	steps.kernels = []kernel{{"encode", func() { encode(false) }}, {"answer", answer}, {"apply", apply}}
	steps.figure = p.figure(name, codec, sizes)
	return steps, err
}

func (p *modelPair) slice(v tensor.Vector, i int) tensor.Vector {
	return v[i*codecSlice : min((i+1)*codecSlice, len(v))]
}

// figure compares what has been applied to the target with half the difference.
func (p *modelPair) figure(name string, codec quant.Codec, sizes []int) codecFigure {
	there, back := 0, 0
	for i, size := range sizes {
		there += size
		back += codec.Diff.Size(len(p.slice(p.active, i)))
	}
	wrong, whole := 0.0, 0.0
	for i, own := range p.passive {
		want := half * (float64(p.active[i]) - float64(own))
		got := float64(p.target[i]) - float64(own)
		wrong, whole = wrong+(got-want)*(got-want), whole+want*want
	}
	bits := 8 / float64(len(p.active))
	return codecFigure{name, float64(there) * bits, float64(back) * bits, math.Sqrt(wrong / whole)}
}

// simpleSlices decode, subtract and encode.
type simpleSlices struct {
	codec   quant.Codec
	scratch tensor.Vector
}

func (s simpleSlices) encode(dst []byte, _ int, x tensor.Vector) int {
	size := s.codec.Code.Size(len(x))
	s.codec.Code.Encode(dst[:size], x)
	return size
}

func (s simpleSlices) answer(diff, code []byte, _ int, own tensor.Vector) error {
	values := s.scratch[:len(own)]
	if err := s.codec.Code.Decode(values, code, own); err != nil {
		return err
	}
	tensor.ScaledDifference(values, half, values, own)
	s.codec.Diff.Encode(diff, values)
	return nil
}

// latticeSlices know how far apart the models are in each block, as peers do that
// have exchanged before.
type latticeSlices struct {
	lattice quant.Lattice
	ranges  [][]float32
	failed  quant.Set
}

func (p *modelPair) latticeSlices(l quant.Lattice) *latticeSlices {
	s := &latticeSlices{lattice: l, failed: make(quant.Set, quant.SetSize(codecSlice))}
	for i := range p.slices() {
		active, passive := p.slice(p.active, i), p.slice(p.passive, i)
		ranges := make([]float32, quant.Blocks(len(active)))
		for j := range ranges {
			from, to := j*quant.BlockLen, min((j+1)*quant.BlockLen, len(active))
			difference := p.scratch[:to-from]
			tensor.ScaledDifference(difference, 1, active[from:to], passive[from:to])
			ranges[j] = quant.RangeOf(quant.RangeCode(quant.Track(0, tensor.MaxAbs(difference))))
		}
		s.ranges = append(s.ranges, ranges)
	}
	return s
}

func (s *latticeSlices) encode(dst []byte, slice int, x tensor.Vector) int {
	return s.lattice.Encode(dst, x, s.ranges[slice], nil, quant.Normal)
}

func (s *latticeSlices) answer(diff, code []byte, slice int, own tensor.Vector) error {
	if _, err := s.lattice.Answer(diff, code, own, quant.Pass{Failed: s.failed}); err != nil {
		return err
	}
	if failed := s.failed.Count(); failed > 0 {
		return fmt.Errorf("%d blocks failed", failed)
	}
	s.lattice.Diff().Shrink(diff, len(own), half)
	return nil
}
