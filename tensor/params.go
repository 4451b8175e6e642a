package tensor

import "fmt"

// Params is a model: a vector and the layout that names its parts. Params share
// their vector with whoever holds it; guarding it is the caller's.
type Params struct {
	layout *Layout
	values Vector
}

// NewParams returns a model of zeros.
func NewParams(l *Layout) *Params {
	return &Params{layout: l, values: make(Vector, l.Len())}
}

// WrapParams returns a model whose values are v itself, not a copy. It is an
// error if v has not the layout's length.
func WrapParams(l *Layout, v Vector) (*Params, error) {
	if len(v) != l.Len() {
		return nil, fmt.Errorf("tensor: %d values for a layout of %d", len(v), l.Len())
	}
	return &Params{layout: l, values: v}, nil
}

// Layout returns the names and shapes of the values.
func (p *Params) Layout() *Layout { return p.layout }

// Vector returns all values; writing to it changes the model.
func (p *Params) Vector() Vector { return p.values }

// Tensor returns the values of one range, row-major, or false if the layout has
// no such name. Writing to it changes the model; appending to it does not reach
// the next range.
func (p *Params) Tensor(name string) (Vector, bool) {
	r, ok := p.layout.Lookup(name)
	if !ok {
		return nil, false
	}
	end := r.Offset + r.Len
	return p.values[r.Offset:end:end], true
}
