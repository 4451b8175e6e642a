package nn

import (
	"fmt"

	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// Linear multiplies each row of in values by a matrix and adds a bias: y = x·Wᵀ + b, as torch.nn.Linear. Its
// parameters are weight [out in] and bias [out].
func Linear(in, out int) Layer { return linear{in: in, out: out, bias: true} }

// LinearNoBias is Linear without a bias.
func LinearNoBias(in, out int) Layer { return linear{in: in, out: out} }

type linear struct {
	in, out int
	bias    bool
	rectify bool // ReLU follows
	gelu    bool // GELU follows
	parts   int  // number of matrices, one after the other, that the columns of the outputs are divided into; or 0
}

func (l linear) String() string { return fmt.Sprintf("Linear(%d, %d)", l.in, l.out) }

// fuse includes a ReLU or GELU that follows; it is applied together with the bias.
func (l linear) fuse(next []Layer) (Layer, int) {
	if !l.bias {
		return nil, 0
	}
	switch first(next).(type) {
	case relu:
		l.rectify = true
		return l, 1
	case gelu:
		l.gelu = true
		return l, 1
	}
	return nil, 0
}

// first returns the first of some layers, nil if there is none.
func first(layers []Layer) Layer {
	if len(layers) == 0 {
		return nil
	}
	return layers[0]
}

func (l linear) For(in Shape) (Built, error) {
	if l.in < 1 || l.out < 1 {
		return Built{}, fmt.Errorf("want at least one value in and one out")
	}
	if in.Width() != l.in {
		return Built{}, fmt.Errorf("want rows of %d values, have %d%s", l.in, in.Width(), flattenHint(in, l.in))
	}
	params := []Param{{tensor.Spec{Name: "weight", Shape: []int{l.out, l.in}, Kind: tensor.Dense}, fanIn(l.in)}}
	if l.bias {
		params = append(params, Param{tensor.Spec{Name: "bias", Shape: []int{l.out}, Kind: tensor.Bias}, fanIn(l.in)})
	}
	rows := in.Rows()
	return Built{Out: in.withWidth(l.out), Params: params, Make: func(r *Room) Step {
		return newLinearStep(r, l, rows)
	}}, nil
}

// flattenHint suggests Flatten if that would give the width wanted.
func flattenHint(in Shape, want int) string {
	if in.Len() == want {
		return ": put Flatten before it"
	}
	return ""
}

type linearStep struct {
	linear
	rows     int // of an example
	mul      *tensor.Multiplier
	x        tensor.Vector // of the last Forward
	errors   tensor.Vector // of the last Backward, at the outputs before ReLU or GELU
	y, below tensor.Vector
	slopes   tensor.Vector // of GELU; nil if the model only predicts
}

func newLinearStep(r *Room, l linear, rows int) *linearStep {
	s := &linearStep{linear: l, rows: rows, mul: r.Multiplier(), y: r.Values(rows * l.out), below: r.errors(rows * l.in)}
	if l.gelu {
		s.slopes = r.Gradients(rows * l.out)
	}
	return s
}

func (s *linearStep) allowsInPlaceAdd() bool { return !s.rectify && !s.gelu }

// weights returns the matrix as it is stored: a row for each output.
func (s *linearStep) weights(w tensor.Vector) tensor.Matrix {
	return tensor.NewMatrix(s.out, s.in, w[:s.in*s.out])
}

// Forward implements Step.
func (s *linearStep) Forward(p Pass, w, x tensor.Vector) tensor.Vector {
	rows := p.Examples * s.rows
	s.x = x
	y := s.y[:rows*s.out]
	if s.parts > 0 {
		return s.forwardParts(w, x, y, rows)
	}
	s.mul.MatMul(tensor.NewMatrix(rows, s.out, y), 1, tensor.NewMatrix(rows, s.in, x), s.weights(w).T(), 0)
	switch bias := w[s.in*s.out:]; {
	case s.rectify:
		ops.AddRowsRectify(y, bias)
	case s.slopes != nil:
		ops.AddRowsGELU(y, s.slopes[:len(y)], bias)
	case s.bias:
		ops.AddRows(y, bias)
	}
	if s.gelu && s.slopes == nil {
		ops.GELU(y, y)
	}
	return y
}

// forwardParts is Forward for outputs that are several matrices.
func (s *linearStep) forwardParts(w, x, y tensor.Vector, rows int) tensor.Vector {
	width, bias := s.out/s.parts, w[s.in*s.out:]
	for i := range s.parts {
		to, weights := part(y, i, 1, rows*width), part(w, i, 1, width*s.in)
		s.mul.MatMul(tensor.NewMatrix(rows, width, to), 1, tensor.NewMatrix(rows, s.in, x), tensor.NewMatrix(width, s.in, weights).T(), 0)
		if s.bias {
			ops.AddRows(to, part(bias, i, 1, width))
		}
	}
	return y
}

// Backward implements Step.
func (s *linearStep) Backward(p Pass, w, g, e tensor.Vector) tensor.Vector {
	rows := p.Examples * s.rows
	switch {
	case s.rectify:
		ops.RectifyGradient(e, s.y[:len(e)])
	case s.gelu:
		ops.Multiply(e, s.slopes[:len(e)])
	}
	s.errors = e
	if bias := g[s.in*s.out:]; s.bias {
		p.Begin(bias)
		ops.AddSumRows(bias, e)
	}
	errors := tensor.NewMatrix(rows, s.out, e)
	s.mul.MatMul(s.weights(g), 1, errors.T(), tensor.NewMatrix(rows, s.in, s.x), p.beta())
	if !p.Inputs {
		return nil
	}
	below := s.below[:rows*s.in]
	s.mul.MatMul(tensor.NewMatrix(rows, s.in, below), 1, errors, s.weights(w), 0)
	return below
}
