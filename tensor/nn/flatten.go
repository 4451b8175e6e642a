package nn

import "github.com/seed-97356399/murmuration/tensor"

// Flatten makes one row of an example, as torch.nn.Flatten: of a picture, channel by
// channel.
func Flatten() Layer { return flatten{} }

type flatten struct{}

func (flatten) String() string { return "Flatten" }

func (flatten) Fit(in Shape) (Fitted, error) {
	rows, width := in.Rows(), in.Width()
	if len(in) < 3 || width == 1 || rows == 1 { // as it lies already
		rows, width = 1, in.Len()
	}
	return Fitted{Out: Shape{in.Len()}, Make: func(r *Room) Step {
		s := &flattenStep{rows: rows, width: width}
		if rows > 1 {
			s.y, s.below = r.Values(in.Len()), r.Gradients(in.Len())
		}
		return s
	}}, nil
}

// flattenStep turns the rows and columns of an example.
type flattenStep struct {
	rows, width int
	y, below    tensor.Vector
}

// Forward implements Step.
func (s *flattenStep) Forward(_ Pass, _, x tensor.Vector) tensor.Vector {
	return turn(s.y, x, s.rows, s.width)
}

// Backward implements Step.
func (s *flattenStep) Backward(_ Pass, _, _, e tensor.Vector) tensor.Vector {
	return turn(s.below, e, s.width, s.rows)
}

// turn sets out to examples with rows and columns exchanged, and is x itself where there is
// only one of them.
func turn(out, x tensor.Vector, rows, width int) tensor.Vector {
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
