package nn

import (
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/tensor"
)

// Sequence is a list of layers that follow each other; it is a Layer too. Its parameters are named as
// torch.nn.Sequential names them: "0.weight", "0.bias", "2.weight" and so on.
type Sequence struct {
	layers []Layer
	names  []string // of their parameters
}

// Sequential makes a Sequence.
func Sequential(layers ...Layer) *Sequence {
	s := &Sequence{make([]Layer, len(layers)), make([]string, len(layers))}
	for i, l := range layers {
		s.layers[i], s.names[i] = childOf(l, i)
	}
	return s
}

// fuser is a layer that may include the layers after it: less work for the same outputs.
type fuser interface {
	// fuse returns a layer in place of this one and the first n of next, or nil if nothing can be included. The
	// included layers have no parameters, except that Flatten, which has none, includes a layer with parameters.
	fuse(next []Layer) (fused Layer, n int)
}

// String names the layer.
func (s *Sequence) String() string { return "Sequential" }

// For implements Layer.
func (s *Sequence) For(in Shape) (Built, error) {
	built := Built{Out: in}
	for i := 0; i < len(s.layers); i++ {
		layer, place := s.layers[i], i
		if f, ok := layer.(fuser); ok {
			if fused, n := f.fuse(s.layers[i+1:]); fused != nil {
				layer, i = fused, i+n
				if _, ok := fused.(flatLinear); ok {
					place++ // index of the layer that has the parameters
				}
			}
		}
		if layer == nil {
			return built, fmt.Errorf("layer %d is nil", place)
		}
		part, err := layer.For(built.Out)
		if err != nil {
			return built, fmt.Errorf("layer %d (%s) on examples of shape %v: %w", place, nameOf(s.layers[place]), built.Out, err)
		}
		if err := part.Out.validate(); err != nil {
			return built, fmt.Errorf("layer %d (%s): its outputs have %w", place, nameOf(s.layers[place]), err)
		}
		built.Out = part.Out
		if _, is := layer.(*Sequence); !is { // of a layer that computes a Sequence in its own way
			part.parts = nil
		}
		part.name = nameOf(s.layers[place])
		built.parts = append(built.parts, part.partsAt(s.names[place])...)
	}
	return joined(built.Out, built.parts), nil
}

// partsAt are the parts of a layer of a Sequence, in which it has a name: those of a Sequence within, else the layer
// itself.
func (f Built) partsAt(layer string) []Built {
	parts := slices.Clone(f.parts)
	if len(parts) == 0 {
		parts = []Built{f}
	}
	for i, p := range parts {
		parts[i].Params, parts[i].name = within(layer, p.Params), under(layer, p.name)
	}
	return parts
}

// joined is parts that follow each other, the outputs of the last of which have a shape.
func joined(out Shape, parts []Built) Built {
	all := Built{Out: out, parts: parts, Make: func(r *Room) Step { return newChain(r, parts) }}
	for _, p := range parts {
		all.Params = append(all.Params, p.Params...)
		all.WholeBatch = all.WholeBatch || p.WholeBatch
		all.Work += p.work()
	}
	return all
}

// within puts the name of a layer before the names of its parameters.
func within(layer string, params []Param) []Param {
	named := slices.Clone(params)
	for i := range named {
		named[i].Name = under(layer, named[i].Name)
	}
	return named
}

// under puts the name of a layer, if it has one, before another name.
func under(layer, name string) string {
	if layer == "" {
		return name
	}
	return layer + "." + name
}

// nameOf is the String of a layer, or its type.
func nameOf(l Layer) string {
	if s, ok := l.(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprintf("%T", l)
}

// chain computes a Sequence.
type chain struct {
	links  []link
	lowest int // the first link with parameters
	// done, if there is one, is called as Backward has finished a link: with the first of its parameters.
	done func(from int)
	// factors, if there is one, is called before done, of links whose gradient is a product.
	factors func(from int, inputs, errors tensor.Vector)
}

// link is a step with the range of its parameters within those of the chain.
type link struct {
	Step
	from, to int
}

func (l link) of(v tensor.Vector) tensor.Vector { return v[l.from:l.to:l.to] }

func newChain(r *Room, parts []Built) *chain {
	c := &chain{links: make([]link, 0, len(parts)), lowest: -1}
	from := 0
	for i, p := range parts {
		to := from + p.values()
		if to > from && c.lowest < 0 {
			c.lowest = i
		}
		c.links = append(c.links, link{p.Make(r), from, to})
		from = to
	}
	return c
}

// Forward implements Step.
func (c *chain) Forward(p Pass, w, x tensor.Vector) tensor.Vector {
	for _, l := range c.links {
		x = l.Forward(p, l.of(w), x)
	}
	return x
}

func (c *chain) allowsInPlaceAdd() bool {
	return len(c.links) > 0 && allowsInPlaceAdd(c.links[len(c.links)-1].Step)
}

// Backward implements Step. It stops at the lowest link with parameters, unless the gradient over the inputs is
// needed.
func (c *chain) Backward(p Pass, w, g, e tensor.Vector) tensor.Vector {
	end := c.lowest
	if p.Inputs {
		end = 0
	} else if end < 0 {
		return e
	}
	for i := len(c.links) - 1; i >= end; i-- {
		l, q := c.links[i], p
		q.Inputs = p.Inputs || i > end
		e = l.Backward(q, l.of(w), l.of(g), e)
		if s, is := l.Step.(*linearStep); is && c.factors != nil && s.parts == 0 {
			c.factors(l.from, s.x, s.errors)
		}
		if c.done != nil && l.to > l.from {
			c.done(l.from)
		}
	}
	return e
}
