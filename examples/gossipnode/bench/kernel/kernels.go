package kernel

import (
	"fmt"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/measure"
	"github.com/seed-97356399/murmuration/peer/optim"
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
func newKernels(n int, seed uint64) (kernels []measure.Kernel, copied measure.Kernel, err error) {
	v := &kernelVectors{dst: make(tensor.Vector, n), x: make(tensor.Vector, n), y: make(tensor.Vector, n), code: make([]byte, tensor.ValueSize*n)}
	measure.Fill(v.x, seed, 1)
	measure.Fill(v.y, seed, 2)
	copy(v.dst, v.y)
	copied = measure.Kernel{Name: "copy", Pass: func() { copy(v.dst, v.x) }}
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

func (v *kernelVectors) elementwise() []measure.Kernel {
	const small, half = 1.0 / 1024, 0.5
	return []measure.Kernel{
		{Name: "add", Pass: func() { tensor.Add(v.dst, v.x) }},
		{Name: "sub", Pass: func() { tensor.Sub(v.dst, v.x) }},
		{Name: "axpy", Pass: func() { tensor.Axpy(v.dst, small, v.x) }},
		{Name: "scaled_difference", Pass: func() { tensor.ScaledDifference(v.dst, half, v.x, v.y) }},
	}
}

func (v *kernelVectors) reductions() []measure.Kernel {
	var sum float64 // kept, so that no compiler finds the work useless
	var all bool
	return []measure.Kernel{
		{Name: "norm2", Pass: func() { sum += tensor.Norm2(v.x) }},
		{Name: "squared_distance", Pass: func() { sum += tensor.SquaredDistance(v.x, v.y) }},
		{Name: "max_abs", Pass: func() { sum += float64(tensor.MaxAbs(v.x)) }},
		{Name: "finite", Pass: func() { all = tensor.Finite(v.x) != all }},
	}
}

// coder are the two directions of a codec. Decoding checks what it decodes.
func (v *kernelVectors) coder(name string) ([]measure.Kernel, error) {
	codec, err := quant.ByName(name)
	if err != nil {
		return nil, fmt.Errorf("measuring codec %s: %w", name, err)
	}
	code := v.code[:codec.MaxSize(len(v.x))]
	codec.Encode(code, v.x, nil)
	if err := codec.Decode(v.dst, code, nil); err != nil {
		return nil, fmt.Errorf("measuring codec %s: %w", name, err)
	}
	return []measure.Kernel{
		{Name: name + "_encode", Pass: func() { codec.Encode(code, v.x, nil) }},
		{Name: name + "_decode", Pass: func() { _ = codec.Decode(v.dst, code, nil) }}, // did just now
	}, nil
}

// optimizers are the steps of training. They decay the weights: without, a
// gradient that is overwritten with the step would shrink to denormal numbers,
// which processors are slow with.
func (v *kernelVectors) optimizers() []measure.Kernel {
	const rate, decay = 1e-3, 1e-2
	step := func(o optim.Optimizer) func() { return func() { o.Delta(v.dst, v.x, rate) } }
	return []measure.Kernel{
		{Name: "momentum", Pass: step(&optim.SGD{Momentum: optim.DefaultMomentum, WeightDecay: decay})},
		{Name: "nesterov", Pass: step(&optim.SGD{Momentum: optim.DefaultMomentum, WeightDecay: decay, Nesterov: true})},
		{Name: "adamw", Pass: step(&optim.AdamW{WeightDecay: decay})},
	}
}
