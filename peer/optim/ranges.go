package optim

import (
	"fmt"
	"iter"
	"slices"

	"github.com/seed-97356399/murmuration/tensor"
)

// Ranges are some of a layout's, for which a setting of an optimizer counts. The zero value
// is all ranges of any layout.
type Ranges struct {
	of    *tensor.Layout
	parts []part // in order and apart from each other
}

// part is a run of values, and the weight decay there.
type part struct {
	from, to int
	decay    float64
}

func (p part) in(v tensor.Vector) tensor.Vector { return v[p.from:p.to] }

// Select are the ranges of a layout that keep picks.
func Select(layout *tensor.Layout, keep func(tensor.Range) bool) Ranges {
	r := Ranges{of: layout}
	for i := range layout.Count() {
		at := layout.At(i)
		switch n := len(r.parts); {
		case !keep(at):
		case n > 0 && r.parts[n-1].to == at.Offset:
			r.parts[n-1].to += at.Len
		default:
			r.parts = append(r.parts, part{from: at.Offset, to: at.Offset + at.Len})
		}
	}
	return r
}

// Weights picks, for Select, the ranges to which weight decay is applied as a rule: those of
// two or more dimensions. Biases and norms, which are few and set no scale of what they
// multiply, are left as they are, and so are statistics.
func Weights(r tensor.Range) bool {
	switch r.Kind {
	case tensor.Bias, tensor.Norm, tensor.Statistic:
		return false
	}
	return len(r.Shape) >= 2
}

// over divides a vector of n values into parts with one weight decay each, which is decay in
// these ranges and 0 elsewhere.
func (r Ranges) over(n int, decay float64) iter.Seq[part] {
	return func(yield func(part) bool) {
		if r.of == nil || decay == 0 {
			yield(part{0, n, decay})
			return
		}
		at := 0
		for _, p := range r.parts {
			if at < p.from && !yield(part{at, p.from, 0}) || !yield(part{p.from, p.to, decay}) {
				return
			}
			at = p.to
		}
		if at < n {
			yield(part{at, n, 0})
		}
	}
}

// has tells whether the range that begins there is one of them.
func (r Ranges) has(offset int) bool {
	return r.of == nil || slices.ContainsFunc(r.parts, func(p part) bool { return p.from <= offset && offset < p.to })
}

// fault is what keeps them from being ranges of a layout, which may be nil.
func (r Ranges) fault(layout *tensor.Layout) error {
	if r.of == nil || layout == nil || r.of.Hash() == layout.Hash() {
		return nil
	}
	return fmt.Errorf("Decayed are ranges of another layout, with %d values: select them of the model's, with %d", r.of.Len(), layout.Len())
}
