package nn

import (
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/tensor"
)

// Concat passes its inputs to several layers and joins their outputs side by side in the last dimension (the channels
// of a picture). Parameters are named as those of a torch.nn.ModuleList in its place.
func Concat(branches ...Layer) Layer { return concat{slices.Clone(branches)} }

type concat struct{ branches []Layer }

func (l concat) String() string { return "Concat" }

func (l concat) For(in Shape) (Built, error) {
	var all Built
	var parts []Built
	for i, b := range l.branches {
		b, name := childOf(b, i)
		if b == nil {
			return all, fmt.Errorf("branch %d is nil", i)
		}
		f, err := b.For(in)
		if err != nil {
			return all, fmt.Errorf("branch %d (%s): %w", i, nameOf(b), err)
		}
		if i == 0 {
			all.Out = f.Out.withWidth(0)
		}
		if !slices.Equal(f.Out.withWidth(0), all.Out.withWidth(0)) {
			return all, fmt.Errorf("branch %d (%s) has outputs of shape %v, the others of %v", i, nameOf(b), f.Out, parts[0].Out)
		}
		all.Out = all.Out.withWidth(all.Out.Width() + f.Out.Width())
		all.Params = append(all.Params, within(name, f.Params)...)
		all.WholeBatch = all.WholeBatch || f.WholeBatch
		parts = append(parts, f)
	}
	if len(parts) == 0 {
		return all, fmt.Errorf("want at least one branch")
	}
	all.Make = func(r *Room) Step { return newConcatStep(r, parts, in, all.Out) }
	return all, nil
}

type concatStep struct {
	branches []branch
	width    int // of all outputs together
	values   int // of an example
	y        tensor.Vector
	below    tensor.Vector
}

// branch is a step, the range of its parameters, and its place in a row of outputs.
type branch struct {
	link
	at, width int
	errors    tensor.Vector
}

func newConcatStep(r *Room, parts []Built, in, out Shape) *concatStep {
	s := &concatStep{width: out.Width(), values: out.Len(), y: r.Values(out.Len()), below: r.Gradients(in.Len())}
	from, at := 0, 0
	for _, p := range parts {
		l := link{p.Make(r), from, from + p.values()}
		s.branches = append(s.branches, branch{l, at, p.Out.Width(), r.Gradients(p.Out.Len())})
		from, at = l.to, at+p.Out.Width()
	}
	return s
}

// Forward implements Step.
func (s *concatStep) Forward(p Pass, w, x tensor.Vector) tensor.Vector {
	for _, b := range s.branches {
		y := b.Forward(p, b.of(w), x)
		for i := range len(y) / b.width {
			copy(s.y[i*s.width+b.at:], part(y, i, 1, b.width))
		}
	}
	return s.y[:p.Examples*s.values]
}

// Backward implements Step.
func (s *concatStep) Backward(p Pass, w, g, e tensor.Vector) tensor.Vector {
	var below tensor.Vector
	for n, b := range s.branches {
		errors := b.errors[:len(e)/s.width*b.width]
		for i := range len(e) / s.width {
			copy(part(errors, i, 1, b.width), e[i*s.width+b.at:])
		}
		share := b.Backward(p, b.of(w), b.of(g), errors)
		if !p.Inputs {
			continue
		}
		if below = s.below[:len(share)]; n == 0 {
			copy(below, share)
		} else {
			tensor.Add(below, share)
		}
	}
	return below
}
