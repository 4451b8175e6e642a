package peer

import (
	"math"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/quant"
)

// plans are what this peer codes its exchanges with: one plan, or one for each choice
// that a link can make. Safe for concurrent use.
type plans struct {
	policy   quant.Policy
	layers   []quant.JointLayer
	values   int           // in an exchange
	deadline time.Duration // of an exchange
	budget   float64       // bytes a second, 0 if there is none
	ready    map[quant.ID]offer
	links    links
}

// offer is a plan with what a proposal says of it.
type offer struct {
	plan   quant.Plan
	ids    []quant.ID
	codecs []uint8
}

// fixed is the key of the plan that no link has chosen.
const fixed = quant.ID(0)

func newPlans(policy quant.Policy, layers []quant.JointLayer, deadline time.Duration, budget float64) *plans {
	p := &plans{policy: policy, layers: layers, deadline: deadline, budget: budget, ready: make(map[quant.ID]offer)}
	for _, l := range layers {
		p.values += l.Len
	}
	if !policy.Choosing() {
		p.ready[fixed] = newOffer(policy.Plan(layers, quant.Codec{}))
		return p
	}
	for _, id := range choices() {
		chosen, _ := quant.ByID(id)
		p.ready[id] = newOffer(policy.Plan(layers, chosen))
	}
	return p
}

func newOffer(plan quant.Plan) offer {
	o := offer{plan: plan, ids: plan.Codecs()}
	for _, id := range o.ids {
		o.codecs = append(o.codecs, uint8(id))
	}
	return o
}

// to is the offer for an exchange with a partner, for a trainer whose step takes so
// long.
func (p *plans) to(partner seam.PeerID, step time.Duration, log *zap.Logger) offer {
	if o, ok := p.ready[fixed]; ok {
		return o
	}
	d := p.links.choose(partner, demand{values: p.values, step: step, deadline: p.deadline, budget: p.budget})
	if d.changed {
		d.tell(partner, log)
	}
	return p.ready[d.codec]
}

// tell logs a decision with the figures that led to it.
func (d decision) tell(partner seam.PeerID, log *zap.Logger) {
	before, _ := quant.ByID(d.before)
	log.Info("the link to a partner decides on its codec",
		zap.String("peer", string(partner)), zap.String("codec", d.link.codec()), zap.String("before", before.Name),
		zap.Float64("bytes_per_second", math.Round(d.link.rate)), zap.Duration("round_trip", d.link.round),
		zap.Duration("expected", d.expected), zap.Duration("step", d.step), zap.Float64("again", d.link.failed))
}

// within is the offer as far as the partner has accepted it. It reports false if the
// partner has accepted what was not offered.
func (o offer) within(accepted []uint8) (offer, bool) {
	for _, c := range accepted {
		if !slices.Contains(o.codecs, c) {
			return offer{}, false
		}
	}
	if len(accepted) == len(o.codecs) {
		return o, true
	}
	codec, known := quant.ByID(quant.ID(accepted[0]))
	return newOffer(quant.Uniform(codec)), known
}

// known are the codecs of an offer that this version has, in the memory of ids.
func known(ids []quant.ID, codecs []uint8) []quant.ID {
	ids = ids[:0]
	for _, c := range codecs {
		if codec, ok := quant.ByID(quant.ID(c)); ok && !slices.Contains(ids, codec.ID) {
			ids = append(ids, codec.ID)
		}
	}
	return ids
}

// numbers are codecs as messages name them, in the memory of list.
func numbers(list []uint8, ids []quant.ID) []uint8 {
	list = list[:0]
	for _, id := range ids {
		list = append(list, uint8(id))
	}
	return list
}
