package quant

import "slices"

// Plan is what the slices of one exchange are coded with, by joint layer. The zero
// value plans nothing.
type Plan struct {
	layers []planned
}

// planned is how the slices of one joint layer are coded.
type planned struct {
	codec, exact Codec
	proportion   int // percent of the slices for which codec is used, and not exact
	priority     int
}

// Uniform plans one codec for all slices of any joint layer.
func Uniform(codec Codec) Plan {
	return Plan{layers: []planned{{codec: codec, exact: codec, proportion: 100}}}
}

// Codec is what to code a slice of a joint layer with. Turn numbers the slices of the
// exchange in the order in which they are sent: where only a proportion is quantized,
// those are spread evenly over the turns.
func (p Plan) Codec(layer, turn int) Codec {
	l := p.at(layer)
	if (turn+1)*l.proportion/100 > turn*l.proportion/100 {
		return l.codec
	}
	return l.exact
}

// Priority orders joint layers in an exchange, the highest first.
func (p Plan) Priority(layer int) int { return p.at(layer).priority }

// Bits are those that a value of a joint layer takes on average, in whichever direction
// takes more, headers of blocks included.
func (p Plan) Bits(layer int) float64 {
	l := p.at(layer)
	share := float64(l.proportion) / 100
	return share*l.codec.bits() + (1-share)*l.exact.bits()
}

func (p Plan) at(layer int) planned {
	if len(p.layers) == 1 {
		return p.layers[0]
	}
	return p.layers[layer]
}

// Codecs are those that the plan uses, each once, those of the largest joint layers
// first if the plan was made by a Policy.
func (p Plan) Codecs() []ID {
	var ids []ID
	for _, l := range p.layers {
		for _, c := range []Codec{l.codec, l.exact} {
			used := c.ID == l.codec.ID && l.proportion > 0 || c.ID == l.exact.ID && l.proportion < 100
			if used && !slices.Contains(ids, c.ID) {
				ids = append(ids, c.ID)
			}
		}
	}
	return ids
}
