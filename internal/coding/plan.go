package coding

import (
	"fmt"
	"slices"
)

// Plan has the codecs for the slices of one exchange: an entry for each joint layer, or a single one for all. The
// zero value plans nothing.
type Plan []LayerPlan

// LayerPlan has the codecs for the slices of one joint layer.
type LayerPlan struct {
	// Codec is used for Proportion percent of the slices, Exact for the others.
	Codec, Exact Codec
	Proportion   int
	// Course, if there is one, is the proportion over the run: During sets Proportion by it.
	Course Course
	// Priority orders the joint layers in an exchange, the highest first.
	Priority int
}

// String names the codecs, for people.
func (l LayerPlan) String() string {
	text := l.Codec.Name
	switch {
	case l.Course != nil:
		text = fmt.Sprintf("%s for a share of the slices that changes in the run, %s for the others", l.Codec.Name, l.Exact.Name)
	case l.Proportion == 0:
		text = l.Exact.Name
	case l.Proportion < 100:
		text = fmt.Sprintf("%s for %d %% of the slices, %s for the others", l.Codec.Name, l.Proportion, l.Exact.Name)
	}
	if l.Priority != 0 {
		text += fmt.Sprintf(", priority %d", l.Priority)
	}
	return text
}

// During is the plan at a progress of the run: made in room where proportions change.
func (p Plan) During(room *Plan, progress float64) Plan {
	if !slices.ContainsFunc(p, func(l LayerPlan) bool { return l.Course != nil }) {
		return p
	}
	now := append((*room)[:0], p...)
	for i := range now {
		if course := now[i].Course; course != nil {
			now[i].Proportion = course.At(progress)
		}
	}
	*room = now
	return now
}

// Uniform plans one codec for the slices of all joint layers.
func Uniform(codec Codec) Plan {
	return Plan{{Codec: codec, Exact: codec, Proportion: 100}}
}

// Codec is the codec for a slice of a joint layer. turn numbers the slices of the exchange in the order of sending.
// If only a proportion is quantized, the quantized slices are spread evenly over the turns.
func (p Plan) Codec(layer, turn int) Codec {
	l := p.at(layer)
	if (turn+1)*l.Proportion/100 > turn*l.Proportion/100 {
		return l.Codec
	}
	return l.Exact
}

// Priority orders joint layers in an exchange, the highest first.
func (p Plan) Priority(layer int) int { return p.at(layer).Priority }

// Bits is the mean number of bits of a value of a joint layer, in the direction that needs more, including headers of
// blocks.
func (p Plan) Bits(layer int) float64 {
	l := p.at(layer)
	share := float64(l.Proportion) / 100
	return share*l.Codec.bits() + (1-share)*l.Exact.bits()
}

func (p Plan) at(layer int) LayerPlan {
	if len(p) == 1 {
		return p[0]
	}
	return p[layer]
}

// Codecs returns the codecs of the plan, each once, in the order of the joint layers.
func (p Plan) Codecs() []ID {
	var ids []ID
	for _, l := range p {
		for _, c := range []Codec{l.Codec, l.Exact} {
			used := l.Course != nil || c.ID == l.Codec.ID && l.Proportion > 0 || c.ID == l.Exact.ID && l.Proportion < 100
			if used && !slices.Contains(ids, c.ID) {
				ids = append(ids, c.ID)
			}
		}
	}
	return ids
}
