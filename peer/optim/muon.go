package optim

import (
	"cmp"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/tensor"
)

// DefaultMuonMomentum is that of Muon.
const DefaultMuonMomentum = 0.95

// Muon steps along the momentum of each matrix with all its singular values made about 1 (Jordan
// et al., 2024), by iterations of Newton and Schulz, so that all directions move alike; everything
// else steps as by AdamW. Steps of matrices have the lengths that AdamW's usually have (Liu et al.,
// 2025), so that one rate does for both. A step costs some 20·n² operations for each of m rows of a
// matrix of m ≥ n: for a dense layer as much as the gradient of 3·n examples.
type Muon struct {
	// Layout is the model's. Its matrices are the ranges of two dimensions or more that are no embeddings,
	// norms or statistics; the kernels of a convolution are one with a row for each output. Required.
	Layout *tensor.Layout
	// Momentum is that of matrices, Nesterov's, 0 to below 1. Default: DefaultMuonMomentum.
	Momentum float64
	// AdamW has the constants for everything else, and weight decay and Clip for all. The
	// state is Muon's own.
	AdamW AdamW

	memory
	parts []muonPart
	schulz
}

// muonPart is a range of the layout; without rows it is no matrix.
type muonPart struct {
	part
	rows, cols int
}

// muonLength makes steps as long as AdamW's, whose values are some 0.2 of the rate.
const muonLength = 0.2

// Delta implements Optimizer.
func (o *Muon) Delta(grad, x tensor.Vector, rate float64) {
	if o.begin(2, len(grad)); o.parts == nil {
		o.divide()
	}
	o.steps++
	clip(grad, o.AdamW.Clip)
	for _, p := range o.parts {
		if p.rows == 0 {
			o.AdamW.rates(rate, p.decay, o.steps).Delta(p.in(grad), p.in(o.vectors[0]), p.in(o.vectors[1]), p.in(grad), p.in(x))
			continue
		}
		step := tensor.MomentumRates{Rate: 1, Momentum: cmp.Or(o.Momentum, DefaultMuonMomentum), Nesterov: true}
		step.Delta(p.in(grad), p.in(o.vectors[0]), p.in(grad), p.in(x))
		o.orthogonalize(tensor.NewMatrix(p.rows, p.cols, p.in(grad)))
		tensor.Scale(p.in(grad), float32(rate*muonLength*math.Sqrt(float64(max(p.rows, p.cols)))))
		if p.decay > 0 {
			tensor.Axpy(p.in(grad), -float32(rate*p.decay), p.in(x))
		}
	}
}

// divide makes the parts of the layout.
func (o *Muon) divide() {
	for _, r := range o.Layout.Ranges() {
		if r.Sharing == tensor.Frozen { // its gradient is zeros
			continue
		}
		p := muonPart{part: part{from: r.Offset, to: r.Offset + r.Len}}
		if o.AdamW.Decayed.has(r.Offset) {
			p.decay = o.AdamW.WeightDecay
		}
		if len(r.Shape) >= 2 && Weights(r) && r.Kind != tensor.Embedding {
			p.rows, p.cols = r.Shape[0], r.Len/r.Shape[0]
		}
		o.parts = append(o.parts, p)
	}
}

// Validate implements Validator.
func (o *Muon) Validate(layout *tensor.Layout) error {
	var f faults
	f.share("Momentum", o.Momentum)
	switch {
	case o.Layout == nil:
		f.add("Layout is missing: give the model's")
	case layout != nil && o.Layout.Hash() != layout.Hash():
		f.add("Layout is another, of %d values: give the model's, of %d", o.Layout.Len(), layout.Len())
	}
	if err := o.AdamW.Validate(layout); err != nil {
		f.add("AdamW: %w", err)
	}
	return f.joined()
}

const kindMuon = "muon"

// State implements Stateful.
func (o *Muon) State() State { return o.state(kindMuon, vectorMean, vectorSquare) }

// Restore implements Stateful.
func (o *Muon) Restore(s State) error { return o.restore(s, kindMuon, vectorMean, vectorSquare) }

// schulz makes the singular values of matrices about 1. It keeps the memory of its products.
type schulz struct {
	mul                  tensor.Multiplier
	gram, quartic, other tensor.Vector
}

// The polynomial a·s + b·s³ + c·s⁵ brings singular values from 0 to 1 to between about 0.7 and 1.2
// in schulzSteps steps (Jordan et al., 2024).
const (
	schulzA, schulzB, schulzC = 3.4445, -4.7750, 2.0315
	schulzSteps               = 5
	schulzFloor               = 1e-7 // of a norm
	// schulzLeast of a norm makes no difference. It is left out, since products of such values, as units that have died leave
	// them, are denormal numbers, with which processors are a hundred times slower.
	schulzLeast = 1e-10
)

// orthogonalize works in place, with products of the smaller side's square.
func (s *schulz) orthogonalize(x tensor.Matrix) {
	s.other = sized(s.other, len(x.Data))
	next := tensor.NewMatrix(x.Rows, x.Cols, s.other)
	if x.Rows > x.Cols {
		x, next = x.T(), next.T()
	}
	n := x.Rows
	s.gram, s.quartic = sized(s.gram, n*n), sized(s.quartic, n*n)
	gram, quartic := tensor.NewMatrix(n, n, s.gram), tensor.NewMatrix(n, n, s.quartic)
	tensor.Scale(x.Data, float32(1/(tensor.Norm2(x.Data)+schulzFloor)))
	for i, v := range x.Data {
		if -schulzLeast < v && v < schulzLeast {
			x.Data[i] = 0
		}
	}
	for range schulzSteps {
		s.mul.MatMul(gram, 1, x, x.T(), 0)
		copy(quartic.Data, gram.Data)
		s.mul.MatMul(quartic, schulzC, gram, gram, schulzB)
		copy(next.Data, x.Data)
		s.mul.MatMul(next, 1, quartic, x, schulzA)
		copy(x.Data, next.Data)
	}
}

// sized is v with so many values, in new memory if it has no room for them.
func sized(v tensor.Vector, values int) tensor.Vector {
	return slices.Grow(v[:0], values)[:values]
}
