package nn

import (
	"fmt"

	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// GRU reads a sequence [places in] from its first place on and has hidden values at each (Cho et al., 2014), as
// torch.nn.GRU with batch_first=True: [places hidden], beginning with zeros. Its parameters are weight_ih_l0
// [3·hidden in], weight_hh_l0 [3·hidden hidden], bias_ih_l0 and bias_hh_l0 [3·hidden], of the gates r, z and n in turn:
//
//	r = Sigmoid(Wir·x + bir + Whr·h + bhr)
//	z = Sigmoid(Wiz·x + biz + Whz·h + bhz)
//	n = Tanh(Win·x + bin + r·(Whn·h + bhn))
//	h = (1-z)·n + z·h
func GRU(in, hidden int) Layer { return gru{in, hidden} }

type gru struct{ in, hidden int }

// gates is how many values a GRU computes for each hidden one.
const gates = 3

func (l gru) String() string { return fmt.Sprintf("GRU(%d, %d)", l.in, l.hidden) }

func (l gru) For(in Shape) (Built, error) {
	if l.in < 1 || l.hidden < 1 || len(in) != 2 || in.Width() != l.in {
		return Built{}, fmt.Errorf("want sequences of %d values a place, at least one, and at least one hidden value", l.in)
	}
	n, start := gates*l.hidden, fanIn(l.hidden)
	params := []Param{
		{tensor.Spec{Name: "weight_ih_l0", Shape: []int{n, l.in}, Kind: tensor.Dense}, start},
		{tensor.Spec{Name: "weight_hh_l0", Shape: []int{n, l.hidden}, Kind: tensor.Dense}, start},
		{tensor.Spec{Name: "bias_ih_l0", Shape: []int{n}, Kind: tensor.Bias}, start},
		{tensor.Spec{Name: "bias_hh_l0", Shape: []int{n}, Kind: tensor.Bias}, start},
	}
	return Built{Out: in.withWidth(l.hidden), Params: params, Make: func(r *Room) Step {
		places := in.Rows()
		return &gruStep{
			gru: l, places: places, mul: r.Multiplier(), y: r.Values(places * l.hidden), below: r.Gradients(places * l.in),
			gates: r.Values(places * n), hidden: r.Values(places * n),
		}
	}}, nil
}

// gruStep computes all examples of a pass place by place: one product with the hidden weights for each place.
type gruStep struct {
	gru
	places int
	mul    *tensor.Multiplier
	x      tensor.Vector // of the last Forward
	y      tensor.Vector
	below  tensor.Vector
	// gates has the rows r, z and n of each place, hidden those of Wh·h + bh; Backward writes the gradients over the sums
	// of the inputs to gates, and over those of the hidden values to hidden.
	gates, hidden tensor.Vector
}

// gruParams are the parameters of a GRU, or their gradient.
type gruParams struct {
	inputs, recurrent         tensor.Matrix
	inputsBias, recurrentBias tensor.Vector
}

func (l gru) params(w tensor.Vector) gruParams {
	n := gates * l.hidden
	biases := w[n*(l.in+l.hidden):]
	return gruParams{tensor.NewMatrix(n, l.in, w[:n*l.in]), tensor.NewMatrix(n, l.hidden, w[n*l.in:n*(l.in+l.hidden)]), biases[:n], biases[n:]}
}

// at is the matrix of a place's rows, of all examples.
func (s *gruStep) at(v tensor.Vector, place, examples, width int) tensor.Matrix {
	return tensor.Matrix{Data: v[place*width:], Rows: examples, Cols: width, Stride: s.places * width}
}

// Forward implements Step.
func (s *gruStep) Forward(p Pass, w, x tensor.Vector) tensor.Vector {
	s.x = x
	c, rows, n := s.params(w), p.Examples*s.places, gates*s.gru.hidden
	all := s.gates[:rows*n]
	s.mul.MatMul(tensor.NewMatrix(rows, n, all), 1, tensor.NewMatrix(rows, s.in, x), c.inputs.T(), 0)
	ops.AddRows(all, c.inputsBias)
	for place := range s.places {
		if place > 0 {
			s.mul.MatMul(s.at(s.hidden, place, p.Examples, n), 1, s.at(s.y, place-1, p.Examples, s.gru.hidden), c.recurrent.T(), 0)
		}
		for i := range p.Examples {
			s.activate(i*s.places+place, place == 0, c.recurrentBias)
		}
	}
	return s.y[:rows*s.gru.hidden]
}

// activate computes the gates and the output of a row, whose hidden sums are still without their bias.
func (s *gruStep) activate(row int, first bool, bias tensor.Vector) {
	width := s.gru.hidden
	g, h, y := part(s.gates, row, 1, gates*width), part(s.hidden, row, 1, gates*width), part(s.y, row, 1, width)
	if first {
		clear(h)
	}
	tensor.Add(h, bias)
	rz, n := g[:2*width], g[2*width:]
	tensor.Add(rz, h[:2*width])
	ops.Sigmoid(rz, rz)
	for i, r := range rz[:width] {
		n[i] += r * h[2*width+i]
	}
	ops.Tanh(n, n)
	for i, z := range rz[width:] {
		y[i] = (1 - z) * n[i]
	}
	if first {
		return
	}
	for i, before := range part(s.y, row-1, 1, width) {
		y[i] += rz[width+i] * before
	}
}

// Backward implements Step.
func (s *gruStep) Backward(p Pass, w, g, e tensor.Vector) tensor.Vector {
	c, to, rows, n := s.params(w), s.params(g), p.Examples*s.places, gates*s.gru.hidden
	for place := s.places - 1; place >= 0; place-- {
		for i := range p.Examples {
			s.gradient(i*s.places+place, place == 0, e)
		}
		if place > 0 { // h of the place before had a part in this one
			s.mul.MatMul(s.at(e, place-1, p.Examples, s.gru.hidden), 1, s.at(s.hidden, place, p.Examples, n), c.recurrent, 1)
		}
	}
	all, hidden := s.gates[:rows*n], s.hidden[:rows*n]
	p.Begin(to.inputsBias)
	p.Begin(to.recurrentBias)
	ops.AddSumRows(to.inputsBias, all)
	ops.AddSumRows(to.recurrentBias, hidden)
	s.mul.MatMul(to.inputs, 1, tensor.NewMatrix(rows, n, all).T(), tensor.NewMatrix(rows, s.in, s.x), p.beta())
	// A row's hidden sums are of the row before, but at an example's first place.
	for i := range p.Examples {
		clear(part(hidden, i*s.places, 1, n))
	}
	s.mul.MatMul(to.recurrent, 1, tensor.NewMatrix(rows-1, n, hidden[n:]).T(), tensor.NewMatrix(rows-1, s.gru.hidden, s.y[:(rows-1)*s.gru.hidden]), p.beta())
	if !p.Inputs {
		return nil
	}
	below := s.below[:rows*s.in]
	s.mul.MatMul(tensor.NewMatrix(rows, s.in, below), 1, tensor.NewMatrix(rows, n, all), c.inputs, 0)
	return below
}

// gradient replaces a row's gates, and its hidden sums, by the gradients over what they were computed from, and adds to
// the row of e before.
func (s *gruStep) gradient(row int, first bool, e tensor.Vector) {
	width := s.gru.hidden
	g, h, errors := part(s.gates, row, 1, gates*width), part(s.hidden, row, 1, gates*width), part(e, row, 1, width)
	for i, d := range errors {
		r, z, n, before := g[i], g[width+i], g[2*width+i], float32(0)
		if !first {
			before = s.y[(row-1)*width+i]
			e[(row-1)*width+i] += d * z
		}
		overN := d * (1 - z) * (1 - n*n)
		overR, overZ := overN*h[2*width+i]*r*(1-r), d*(before-n)*z*(1-z)
		g[i], g[width+i], g[2*width+i] = overR, overZ, overN
		h[i], h[width+i], h[2*width+i] = overR, overZ, overN*r
	}
}
