package codec

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/measure"
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
const codecSlice = measure.MaxSlice

const (
	// maxCode is the most bytes that a codec makes of a slice.
	maxCode = 2 * tensor.ValueSize * codecSlice
	// half is the share of a difference by which both sides move.
	half = 0.5
)

func newModelPair(n int, seed uint64, apart float64) *modelPair {
	p := &modelPair{
		active: make(tensor.Vector, n), passive: make(tensor.Vector, n), target: make(tensor.Vector, n),
		code: make([]byte, (n+codecSlice-1)/codecSlice*maxCode), diff: make([]byte, tensor.ValueSize*n),
		frame:   make([]byte, maxCode),
		scratch: make(tensor.Vector, min(n, codecSlice)),
	}
	measure.Fill(p.active, seed, 1)
	size := tensor.Norm2(p.active) / math.Sqrt(float64(n)) * apart
	source := rand.New(rand.NewPCG(seed, 2))
	for i, v := range p.active {
		p.passive[i] = v + float32(size*source.NormFloat64())
	}
	copy(p.target, p.passive)
	return p
}

func (p *modelPair) slices() int { return (len(p.active) + codecSlice - 1) / codecSlice }

// copied is the reference.
func (p *modelPair) copied() measure.Kernel {
	return measure.Kernel{Name: "copy", Pass: func() { copy(p.target, p.active) }}
}

// exchange prepares the three steps of a codec, each on all slices, and does each once: so
// they have codes to work on, which a measured encode does not keep, and an error shows.
func (p *modelPair) exchange(name string) (steps []measure.Kernel, figure codecFigure, err error) {
	codec, err := quant.ByName(name)
	if err != nil {
		return nil, figure, fmt.Errorf("measuring a codec: %w", err)
	}
	ranges := make([][]float32, p.slices()) // none, but for lattices
	if codec.Lattice() {
		ranges = p.apart()
	}
	sizes := make([]int, p.slices())
	encode := func(keep bool) {
		rest := p.code
		for i := range sizes {
			to := p.frame
			if keep {
				to = rest
			}
			sizes[i] = codec.Encode(to, p.slice(p.active, i), ranges[i])
			rest = rest[sizes[i]:]
		}
	}
	answer := func() {
		code, diff := p.code, p.diff
		for i, size := range sizes {
			own := p.slice(p.passive, i)
			back := codec.DiffSize(len(own))
			if e := codec.Answer(diff[:back], code[:size], own, p.scratch[:len(own)], half); e != nil && err == nil {
				err = fmt.Errorf("measuring codec %s: slice %d: %w", name, i, e)
			}
			code, diff = code[size:], diff[back:]
		}
	}
	apply := func() {
		diff := p.diff
		for i := range sizes {
			to := p.slice(p.target, i)
			back := codec.DiffSize(len(to))
			values := p.scratch[:len(to)]
			if e := codec.DecodeDiff(values, diff[:back]); e != nil && err == nil {
				err = fmt.Errorf("measuring codec %s: applying slice %d: %w", name, i, e)
			}
			tensor.Add(to, values)
			diff = diff[back:]
		}
	}
	copy(p.target, p.passive)
	encode(true)
	answer()
	apply()
	steps = []measure.Kernel{
		{Name: "encode", Pass: func() { encode(false) }}, {Name: "answer", Pass: answer}, {Name: "apply", Pass: apply},
	}
	return steps, p.figure(name, codec, sizes), err
}

func (p *modelPair) slice(v tensor.Vector, i int) tensor.Vector {
	return v[i*codecSlice : min((i+1)*codecSlice, len(v))]
}

// figure compares what has been applied to the target with half the difference.
func (p *modelPair) figure(name string, codec quant.Codec, sizes []int) codecFigure {
	there, back := 0, 0
	for i, size := range sizes {
		there += size
		back += codec.DiffSize(len(p.slice(p.active, i)))
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

// apart is how far apart the models are in each block of each slice, as peers know that
// have exchanged before.
func (p *modelPair) apart() [][]float32 {
	var all [][]float32
	for i := range p.slices() {
		active, passive := p.slice(p.active, i), p.slice(p.passive, i)
		var ranges []float32
		for from := 0; from < len(active); from += quant.BlockLen {
			to := min(from+quant.BlockLen, len(active))
			difference := p.scratch[:to-from]
			tensor.ScaledDifference(difference, 1, active[from:to], passive[from:to])
			ranges = append(ranges, tensor.MaxAbs(difference))
		}
		all = append(all, ranges)
	}
	return all
}
