package nn

import "github.com/seed-97356399/murmuration/tensor"

// Flatten makes one row of an example, as torch.nn.Flatten: a picture channel by channel.
func Flatten() Layer { return flatten{} }

type flatten struct{}

func (flatten) String() string { return "Flatten" }

// fewOutputs bounds the outputs of a Linear whose weights are transposed once a batch, so that pictures need not be.
const fewOutputs = 64

// fuse includes a Linear that follows, and the layers which that one includes.
func (flatten) fuse(next []Layer) (Layer, int) {
	layer := first(next)
	inner := layer
	if s, ok := layer.(started); ok {
		inner = s.Layer
	}
	if l, ok := inner.(linear); !ok || l.out > fewOutputs {
		return nil, 0
	}
	if fused, n := layer.(fuser).fuse(next[1:]); fused != nil {
		return flatLinear{fused}, 1 + n
	}
	return flatLinear{layer}, 1
}

func (flatten) For(in Shape) (Built, error) {
	rows, width := transposedShape(in)
	return Built{Out: Shape{in.Len()}, Make: func(r *Room) Step {
		s := &flattenStep{rows: rows, width: width}
		if rows > 1 {
			s.y, s.below = r.Values(in.Len()), r.Gradients(in.Len())
		}
		return s
	}}, nil
}

// transposedShape returns the rows and columns that Flatten exchanges; one row if an example is in torch's order.
func transposedShape(in Shape) (rows, width int) {
	if len(in) < 3 || in.Width() == 1 {
		return 1, in.Len()
	}
	return in.Rows(), in.Width()
}

// flattenStep exchanges the rows and columns of an example.
type flattenStep struct {
	rows, width int
	y, below    tensor.Vector
}

// Forward implements Step.
func (s *flattenStep) Forward(_ Pass, _, x tensor.Vector) tensor.Vector {
	return transpose(s.y, x, s.rows, s.width)
}

// Backward implements Step.
func (s *flattenStep) Backward(_ Pass, _, _, e tensor.Vector) tensor.Vector {
	return transpose(s.below, e, s.width, s.rows)
}

// transpose writes examples with rows and columns exchanged to out. With one row or one column it returns x itself.
func transpose(out, x tensor.Vector, rows, width int) tensor.Vector {
	if rows == 1 || width == 1 {
		return x
	}
	out = out[:len(x)]
	for from := 0; from < len(x); from += rows * width {
		for row := range rows {
			for col, v := range x[from+row*width:][:width] {
				out[from+col*rows+row] = v
			}
		}
	}
	return out
}

// flatLinear is a Linear after Flatten: it transposes its weights, not the pictures.
type flatLinear struct{ Layer }

func (l flatLinear) String() string { return nameOf(l.Layer) }

func (l flatLinear) For(in Shape) (Built, error) {
	f, err := l.Layer.For(Shape{in.Len()})
	if rows, width := transposedShape(in); err == nil && rows > 1 {
		inner, values := f.Make, f.values()
		f.Make = func(r *Room) Step {
			return &flatLinearStep{
				Step: inner(r), rows: rows, width: width, count: Shape(f.Params[0].Shape).Len(),
				weights: make(tensor.Vector, values), sums: make(tensor.Vector, values),
			}
		}
	}
	return f, err
}

type flatLinearStep struct {
	Step
	rows, width   int           // of a picture
	count         int           // of weights; biases follow
	weights, sums tensor.Vector // transposed
}

// Forward implements Step.
func (s *flatLinearStep) Forward(p Pass, w, x tensor.Vector) tensor.Vector {
	if p.Fresh {
		transpose(s.weights, w[:s.count], s.width, s.rows)
		copy(s.weights[s.count:], w[s.count:])
	}
	return s.Step.Forward(p, s.weights, x)
}

// Backward implements Step.
func (s *flatLinearStep) Backward(p Pass, _, g, e tensor.Vector) tensor.Vector {
	below := s.Step.Backward(p, s.weights, s.sums, e)
	if p.Last {
		transpose(g, s.sums[:s.count], s.rows, s.width)
		copy(g[s.count:], s.sums[s.count:])
	}
	return below
}
