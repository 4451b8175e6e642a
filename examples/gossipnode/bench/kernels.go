package bench

import (
	"fmt"
	"math/rand/v2"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// kernelVectors are what the kernels work on, shared by all of them: the first two
// are also what the reference copies, from x to dst, before each sample.
type kernelVectors struct {
	dst, x, y tensor.Vector
	code      []byte
}

// newKernels makes all kernels on vectors of n values, and the copy that they are
// held against.
func newKernels(n int, seed uint64) (kernels []kernel, copied kernel, err error) {
	v := &kernelVectors{dst: make(tensor.Vector, n), x: make(tensor.Vector, n), y: make(tensor.Vector, n), code: make([]byte, tensor.ValueSize*n)}
	fillValues(v.x, seed, 1)
	fillValues(v.y, seed, 2)
	copy(v.dst, v.y)
	copied = kernel{"copy", func() { copy(v.dst, v.x) }}
	kernels = append(v.elementwise(), v.reductions()...)
	for _, name := range []string{"raw", "bf16"} {
		coded, err := v.coder(name)
		if err != nil {
			return nil, copied, err
		}
		kernels = append(kernels, coded...)
	}
	return append(kernels, v.optimizers()...), copied, nil
}

// fillValues draws values of the size that parameters have; different streams of
// one seed differ.
func fillValues(v tensor.Vector, seed, stream uint64) {
	const spread = 0.1
	source := rand.New(rand.NewPCG(seed, stream))
	for i := range v {
		v[i] = spread * (source.Float32() - 0.5)
	}
}

func (v *kernelVectors) elementwise() []kernel {
	const small, half = 1.0 / 1024, 0.5
	return []kernel{
		{"add", func() { tensor.Add(v.dst, v.x) }},
		{"sub", func() { tensor.Sub(v.dst, v.x) }},
		{"axpy", func() { tensor.Axpy(v.dst, small, v.x) }},
		{"blend", func() { tensor.Blend(v.dst, half, v.x) }},
		{"scaled_difference", func() { tensor.ScaledDifference(v.dst, half, v.x, v.y) }},
	}
}

func (v *kernelVectors) reductions() []kernel {
	var sum float64 // kept, so that no compiler finds the work useless
	var all bool
	return []kernel{
		{"dot", func() { sum += tensor.Dot(v.x, v.y) }},
		{"norm2", func() { sum += tensor.Norm2(v.x) }},
		{"squared_distance", func() { sum += tensor.SquaredDistance(v.x, v.y) }},
		{"max_abs", func() { sum += float64(tensor.MaxAbs(v.x)) }},
		{"finite", func() { all = tensor.Finite(v.x) != all }},
	}
}

// coder are the two directions of a codec. Decoding checks what it decodes.
func (v *kernelVectors) coder(name string) ([]kernel, error) {
	codec, err := quant.ByName(name)
	if err != nil {
		return nil, fmt.Errorf("measuring codec %s: %w", name, err)
	}
	code := v.code[:codec.Code.Size(len(v.x))]
	codec.Code.Encode(code, v.x)
	if err := codec.Code.Decode(v.dst, code, nil); err != nil {
		return nil, fmt.Errorf("measuring codec %s: %w", name, err)
	}
	return []kernel{
		{name + "_encode", func() { codec.Code.Encode(code, v.x) }},
		{name + "_decode", func() { _ = codec.Code.Decode(v.dst, code, nil) }}, // did just now
	}, nil
}

// optimizers are the steps of training. They decay the weights: without, a
// gradient that is overwritten with the step would shrink to denormal numbers,
// which processors are slow with.
func (v *kernelVectors) optimizers() []kernel {
	const rate, decay = 1e-3, 1e-2
	step := func(o peer.Optimizer) func() { return func() { o.Delta(v.dst, v.x, rate) } }
	return []kernel{
		{"momentum", step(&peer.SGD{Momentum: peer.DefaultMomentum, WeightDecay: decay})},
		{"nesterov", step(&peer.SGD{Momentum: peer.DefaultMomentum, WeightDecay: decay, Nesterov: true})},
		{"adamw", step(&peer.AdamW{WeightDecay: decay})},
	}
}
