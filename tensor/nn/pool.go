package nn

import (
	"fmt"

	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// MaxPool2d takes the largest value of each square of size×size pixels, channel by channel, as torch.nn.MaxPool2d.
// Rows and columns at the end that fill no square are left out.
func MaxPool2d(size int) Layer { return maxPool2d{size} }

type maxPool2d struct{ size int }

func (l maxPool2d) String() string { return fmt.Sprintf("MaxPool2d(%d)", l.size) }

func (l maxPool2d) For(in Shape) (Built, error) {
	s, err := picture(in, in.Width())
	if err != nil {
		return Built{}, err
	}
	q, err := squares(s, l.size)
	if err != nil {
		return Built{}, err
	}
	return Built{Out: shapeOf(q.out), Make: func(r *Room) Step {
		if l.size == 2 {
			return newMaxPoolStep(r, s)
		}
		return &maxSquaresStep{grid: q, places: make([]int, q.out.Len()*r.Examples()), y: r.Values(q.out.Len()), below: r.Gradients(s.Len())}
	}}, nil
}

// maxPoolStep is MaxPool2d(2).
type maxPoolStep struct {
	pool     *ops.MaxPool
	in       ops.Shape
	places   []byte // of the maxima
	y, below tensor.Vector
}

func newMaxPoolStep(r *Room, in ops.Shape) *maxPoolStep {
	pool := ops.NewMaxPool(in)
	return &maxPoolStep{pool: pool, in: in, places: make([]byte, r.Examples()*pool.PlacesLen()), y: r.Values(pool.Out().Len()), below: r.Gradients(in.Len())}
}

// Forward implements Step.
func (s *maxPoolStep) Forward(p Pass, _, x tensor.Vector) tensor.Vector {
	y := s.y[:p.Examples*s.pool.Out().Len()]
	s.pool.Forward(y, s.places[:p.Examples*s.pool.PlacesLen()], x)
	return y
}

// Backward implements Step.
func (s *maxPoolStep) Backward(p Pass, _, _, e tensor.Vector) tensor.Vector {
	below := s.below[:p.Examples*s.in.Len()]
	s.pool.Gradient(below, s.places[:p.Examples*s.pool.PlacesLen()], e)
	return below
}

// AvgPool2d takes the mean of each square of size×size pixels, channel by channel, as torch.nn.AvgPool2d. Rows and
// columns at the end that fill no square are left out.
func AvgPool2d(size int) Layer { return avgPool2d{size: size} }

// GlobalAvgPool is the mean of all pixels, [1 1 channels], as torch.nn.AdaptiveAvgPool2d(1).
func GlobalAvgPool() Layer { return avgPool2d{all: true} }

type avgPool2d struct {
	size int
	all  bool // pixels are one square
}

func (l avgPool2d) String() string {
	if l.all {
		return "GlobalAvgPool"
	}
	return fmt.Sprintf("AvgPool2d(%d)", l.size)
}

func (l avgPool2d) For(in Shape) (Built, error) {
	s, err := picture(in, in.Width())
	if err != nil {
		return Built{}, err
	}
	if l.all {
		return Built{Out: Shape{1, 1, s.Channels}, Make: func(r *Room) Step {
			return &globalAvgStep{in: s, y: r.Values(s.Channels), below: r.Gradients(s.Len())}
		}}, nil
	}
	q, err := squares(s, l.size)
	if err != nil {
		return Built{}, err
	}
	return Built{Out: shapeOf(q.out), Make: func(r *Room) Step {
		return &avgSquaresStep{grid: q, y: r.Values(q.out.Len()), below: r.Gradients(s.Len())}
	}}, nil
}

type globalAvgStep struct {
	in       ops.Shape
	y, below tensor.Vector
}

// Forward implements Step.
func (s *globalAvgStep) Forward(p Pass, _, x tensor.Vector) tensor.Vector {
	y := s.y[:p.Examples*s.in.Channels]
	ops.GlobalAverage(y, x, s.in)
	return y
}

// Backward implements Step.
func (s *globalAvgStep) Backward(p Pass, _, _, e tensor.Vector) tensor.Vector {
	below := s.below[:p.Examples*s.in.Len()]
	ops.GlobalAverageGradient(below, e, s.in)
	return below
}

// grid divides a picture into squares, each of which a pool makes one pixel of.
type grid struct {
	in, out ops.Shape
	size    int
}

func squares(in ops.Shape, size int) (grid, error) {
	if size < 1 || in.Height < size || in.Width < size {
		return grid{}, fmt.Errorf("want a size of 1 to that of the pictures")
	}
	return grid{in, ops.Shape{Height: in.Height / size, Width: in.Width / size, Channels: in.Channels}, size}, nil
}

// each calls visit for each value, with its index in the input and that of its square in the output.
func (g *grid) each(examples int, visit func(pixel, square int)) {
	for i := range examples {
		for y := range g.out.Height * g.size {
			for x := range g.out.Width * g.size {
				visit(i*g.in.Len()+(y*g.in.Width+x)*g.in.Channels, i*g.out.Len()+(y/g.size*g.out.Width+x/g.size)*g.in.Channels)
			}
		}
	}
}

type avgSquaresStep struct {
	grid
	y, below tensor.Vector
}

// Forward implements Step.
func (s *avgSquaresStep) Forward(p Pass, _, x tensor.Vector) tensor.Vector {
	y, n := s.y[:p.Examples*s.out.Len()], s.in.Channels
	clear(y)
	s.each(p.Examples, func(pixel, square int) { tensor.Add(y[square:square+n], x[pixel:pixel+n]) })
	tensor.Scale(y, 1/float32(s.size*s.size))
	return y
}

// Backward implements Step.
func (s *avgSquaresStep) Backward(p Pass, _, _, e tensor.Vector) tensor.Vector {
	below, n := s.below[:p.Examples*s.in.Len()], s.in.Channels
	clear(below)
	tensor.Scale(e, 1/float32(s.size*s.size))
	s.each(p.Examples, func(pixel, square int) { copy(below[pixel:pixel+n], e[square:square+n]) })
	return below
}

// maxSquaresStep is MaxPool2d for squares of any size.
type maxSquaresStep struct {
	grid
	places   []int // of the maxima
	y, below tensor.Vector
}

// Forward implements Step.
func (s *maxSquaresStep) Forward(p Pass, _, x tensor.Vector) tensor.Vector {
	y := s.y[:p.Examples*s.out.Len()]
	for i := range y {
		s.places[i] = -1
	}
	s.each(p.Examples, func(pixel, square int) {
		for c := range s.in.Channels {
			if v, at := x[pixel+c], square+c; s.places[at] < 0 || v > y[at] {
				y[at], s.places[at] = v, pixel+c
			}
		}
	})
	return y
}

// Backward implements Step.
func (s *maxSquaresStep) Backward(p Pass, _, _, e tensor.Vector) tensor.Vector {
	below := s.below[:p.Examples*s.in.Len()]
	clear(below)
	for i, v := range e {
		below[s.places[i]] = v
	}
	return below
}
