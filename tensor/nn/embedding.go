package nn

import (
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/tensor"
)

// Embedding replaces each value, a row number from 0, by the width values of that row of a table, as
// torch.nn.Embedding. Its parameter is weight [rows width]. Any other value is an error of the program: the layer
// panics.
func Embedding(rows, width int) Layer { return embedding{rows: rows, width: width} }

// EmbeddingSum adds up the rows of all values of an example's last dimension, as torch.nn.EmbeddingBag with mode
// "sum"; -1 stands for no row. It serves examples of several categories, where each category has its own rows.
func EmbeddingSum(rows, width int) Layer { return embedding{rows: rows, width: width, sum: true} }

type embedding struct {
	rows, width int
	sum         bool
}

func (l embedding) String() string {
	if l.sum {
		return fmt.Sprintf("EmbeddingSum(%d, %d)", l.rows, l.width)
	}
	return fmt.Sprintf("Embedding(%d, %d)", l.rows, l.width)
}

func (l embedding) For(in Shape) (Built, error) {
	if l.rows < 1 || l.rows > maxRows || l.width < 1 {
		return Built{}, fmt.Errorf("want 1 to %d rows of at least one value", maxRows)
	}
	out, terms := append(slices.Clone(in), l.width), 1
	if l.sum {
		out, terms = in.withWidth(l.width), in.Width()
	}
	params := []Param{{tensor.Spec{Name: "weight", Shape: []int{l.rows, l.width}, Kind: tensor.Embedding}, Normal(1)}}
	return Built{Out: out, Params: params, Make: func(r *Room) Step {
		return &embeddingStep{embedding: l, terms: terms, y: r.Values(out.Len())}
	}}, nil
}

// maxRows is how many row numbers a float32 holds exactly.
const maxRows = 1 << 24

type embeddingStep struct {
	embedding
	terms int // values whose rows are added up
	x     tensor.Vector
	y     tensor.Vector
}

// Forward implements Step.
func (s *embeddingStep) Forward(_ Pass, w, x tensor.Vector) tensor.Vector {
	s.x = x
	y := s.y[:len(x)/s.terms*s.width]
	if !s.sum {
		for i, v := range x {
			copy(part(y, i, 1, s.width), part(w, s.row(v), 1, s.width))
		}
		return y
	}
	clear(y)
	for i, v := range x {
		if v != none {
			tensor.Add(part(y, i/s.terms, 1, s.width), part(w, s.row(v), 1, s.width))
		}
	}
	return y
}

// none is the value that stands for no row.
const none = -1

// row returns the row number of a value.
func (s *embeddingStep) row(v float32) int {
	if !(v >= 0 && v < float32(s.rows)) || float32(int(v)) != v {
		panic(fmt.Sprintf("nn: %v of the value %v: want the number of a row, from 0", s.embedding, v))
	}
	return int(v)
}

// Backward implements Step. It changes only the gradient of the rows that the pass has used.
func (s *embeddingStep) Backward(p Pass, _, g, e tensor.Vector) tensor.Vector {
	p.Begin(g)
	for i, v := range s.x {
		if v != none {
			tensor.Add(part(g, int(v), 1, s.width), part(e, i/s.terms, 1, s.width))
		}
	}
	return nil // numbers of rows have no gradient
}

// Positions adds learned values to each place of a sequence [context width]: weight [context width], as a
// torch.nn.Embedding of the places' numbers.
func Positions(context, width int) Layer { return positions{Shape{context, width}} }

type positions struct{ shape Shape }

func (l positions) String() string { return fmt.Sprintf("Positions(%d, %d)", l.shape[0], l.shape[1]) }

func (l positions) For(in Shape) (Built, error) {
	if !slices.Equal(in, l.shape) {
		return Built{}, fmt.Errorf("want sequences of shape %v", l.shape)
	}
	params := []Param{{tensor.Spec{Name: "weight", Shape: l.shape, Kind: tensor.Embedding}, Normal(1)}}
	return Built{Out: in, Params: params, Make: func(r *Room) Step {
		return &positionsStep{y: r.Values(in.Len())}
	}}, nil
}

type positionsStep struct{ y tensor.Vector }

// Forward implements Step.
func (s *positionsStep) Forward(p Pass, w, x tensor.Vector) tensor.Vector {
	y := s.y[:len(x)]
	copy(y, x)
	for i := range p.Examples {
		tensor.Add(part(y, i, 1, len(w)), w)
	}
	return y
}

// Backward implements Step.
func (s *positionsStep) Backward(p Pass, _, g, e tensor.Vector) tensor.Vector {
	p.Begin(g)
	for i := range p.Examples {
		tensor.Add(g, part(e, i, 1, len(g)))
	}
	return e
}
