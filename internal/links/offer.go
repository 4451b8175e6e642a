package links

import (
	"slices"

	"github.com/seed-97356399/murmuration/internal/coding"
)

// Offer is the plan of codecs for exchanges, and its form in a proposal.
type Offer struct {
	Plan   coding.Plan
	IDs    []coding.ID // the codecs of the plan
	Codecs []uint8     // the same as numbers in messages
}

// fixed is the key of the plan that no link has chosen.
const fixed = coding.ID(0)

// offers are the possible offers of a configuration: one, or one for each codec that a link
// can choose.
func offers(c Config) map[coding.ID]Offer {
	if !c.Codecs.Choosing() {
		return map[coding.ID]Offer{fixed: NewOffer(c.Codecs.Plan(c.Layers, coding.Codec{}))}
	}
	ready := make(map[coding.ID]Offer)
	for _, id := range choices() {
		chosen, _ := coding.ByID(id)
		ready[id] = NewOffer(c.Codecs.Plan(c.Layers, chosen))
	}
	return ready
}

// values is the number of values in an exchange.
func values(layers []coding.JointLayer) (n int) {
	for _, l := range layers {
		n += l.Len
	}
	return n
}

// NewOffer offers the codecs of a plan.
func NewOffer(plan coding.Plan) Offer {
	o := Offer{Plan: plan, IDs: plan.Codecs()}
	for _, id := range o.IDs {
		o.Codecs = append(o.Codecs, uint8(id))
	}
	return o
}

// Rounds tells whether a codec of the offer rounds.
func (o Offer) Rounds() bool {
	return slices.ContainsFunc(o.IDs, func(id coding.ID) bool { return id != coding.Raw })
}

// Within is the part of the offer that the partner has accepted. It returns false if the
// partner has accepted a codec that was not offered.
func (o Offer) Within(accepted []uint8) (Offer, bool) {
	for _, c := range accepted {
		if !slices.Contains(o.Codecs, c) {
			return Offer{}, false
		}
	}
	if len(accepted) == len(o.Codecs) {
		return o, true
	}
	codec, known := coding.ByID(coding.ID(accepted[0]))
	return NewOffer(coding.Uniform(codec)), known
}

// Known are the codecs of an offer that this version has, in the memory of ids.
func Known(ids []coding.ID, codecs []uint8) []coding.ID {
	ids = ids[:0]
	for _, c := range codecs {
		if codec, ok := coding.ByID(coding.ID(c)); ok && !slices.Contains(ids, codec.ID) {
			ids = append(ids, codec.ID)
		}
	}
	return ids
}

// Numbers are the numbers of codecs in messages, in the memory of list.
func Numbers(list []uint8, ids []coding.ID) []uint8 {
	list = list[:0]
	for _, id := range ids {
		list = append(list, uint8(id))
	}
	return list
}

// Coarsest is the codec with the fewest bits: a lattice before simple ones, the lowest
// number among lattices, the highest among simple ones.
func Coarsest(ids []coding.ID) (coarse coding.ID) {
	for _, id := range ids {
		lattice, coarser := id >= coding.Lattice4to1, coarse >= coding.Lattice4to1
		if lattice && (!coarser || id < coarse) || !lattice && !coarser && id > coarse {
			coarse = id
		}
	}
	return coarse
}
