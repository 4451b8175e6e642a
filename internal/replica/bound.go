package replica

import (
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/tensor"
)

// A partner's model is trusted up to the usual distance of models: of a difference of norm
// D both sides take only the share f = min(1, τ_A/D, τ_P/D) (self-centred clipping, He,
// Karimireddy and Jaggi, 2022). A side's bound τ is the largest of three, slice by slice:
//
//   - nearly three times the distance that the slice has moved by itself since its last
//     exchange: two models that have moved as far in opposite directions are twice that
//     apart. No partner can influence it, and it falls with the learning rate.
//   - the same multiple of the stride, which is the longest such movement lately, but no
//     more than the median of the last distances, one of each partner. Without it, models that
//     have moved apart and no longer move would not trust each other.
//   - three quarters of that median. With it a slice that moves little follows others that
//     move much. It is not more, because a liar that pushes drives honest models apart: a
//     bound of the whole distance would grow with what it allows.
//
// The machine limits how often the same partner may come. For a partner whose differences
// all have the same direction the bound is smaller (bias.go).

const (
	// boundWindow is the number of partners whose last distances are kept.
	boundWindow = 9
	// boundTrust is the share of the median of distances that is trusted.
	boundTrust = 0.75
	// strideKept is the factor by which an exchange decays the stride, unless the slice has
	// moved farther. A longer memory would lag behind the learning rate, and give a liar
	// more influence at the end of a run.
	strideKept = 0.987
	// boundGrowth bounds a distance that enters the window, as a multiple of the smaller bound,
	// so that a peer that a liar has pushed away does not get a larger bound than the others.
	// The bound of a slice that has not moved yet can follow distant models: it doubles with
	// each exchange that needs it. Once the slice moves, its own movement enlarges the bound at
	// once, and the distances of most of the last partners enlarge it by an eighth.
	boundGrowth, movingGrowth = 2 / boundTrust, 1.5
	// boundFloor is the share of its own norm by which a slice may differ in any case: the
	// bound of models that were equal for long grows from there. A slice that has not moved
	// by unmovedFloor of its norm since the beginning has no training to lose, and cannot
	// tell how far others move: its bound is the whole median.
	boundFloor, unmovedFloor = 1e-4, 0.02
	// normEvery is the number of distances after which that norm is measured again; it is
	// also measured after each of the first boundWindow.
	normEvery = 16
	// boundLeast is the least bound: below it, rounding to float32 may change it by more
	// than codecSlack, and an honest partner would be blamed.
	boundLeast = 1e-30
	// boundUnknown is the bound of a slice of zeros that has met nothing but zeros.
	// Its norm says nothing about the models of the run, so the bound is absolute; at
	// first it doubles with each exchange that needs it.
	boundUnknown = 1
	// codecSlack is by how much a coded difference may be longer than the exact one.
	codecSlack = 1.01
	// roundingSlack is the part of it for rounding to the smallest values of a codec.
	roundingSlack = (codecSlack - 1) / 2
	// implausibleRatio bounds the distance of a partner's slice, as a multiple of 1 plus
	// the own norm: a slice beyond it is no model of this run.
	implausibleRatio = 1e6
)

// bound is the window of a slice's distances; the slice's lock guards it.
type bound struct {
	meetings [boundWindow]meeting // the oldest first
	seen     uint8                // at most boundWindow
	moved    float32              // by the slice itself since its last exchange, as last measured
	stride   float32              // as the last exchange left it
	way      float32              // total movement between exchanges
	moves    bool                 // the way has exceeded a share of the norm
	age      uint8                // distances since norm was taken
	met      uint8                // distances in all, at most boundWindow
	norm     float64              // of the slice, about
}

// meeting is the last exchange with a partner.
type meeting struct {
	partner  string
	distance float32 // as clipped
}

// limit is τ for the values own of the slice, which has moved so far by itself since its
// last exchange.
func (b *bound) limit(own tensor.Vector, moved float64) float64 {
	b.moved = float32(moved)
	if b.met < boundWindow || b.age >= normEvery || b.norm == 0 {
		b.norm, b.age = tensor.Norm2(own), 0
	}
	b.moves = b.moves || float64(b.way)+moved > unmovedFloor*b.norm
	trust, floor := boundTrust, boundFloor
	if !b.moves {
		trust, floor = 1, unmovedFloor
	}
	lower, upper := b.medians()
	limit := max(boundDrift*moved, min(boundDrift*float64(b.stride), upper), trust*lower, floor*b.norm)
	if limit < boundLeast {
		return boundUnknown
	}
	return limit
}

// medians are the lower and the upper median of the distances, which differ if their number
// is even. Of two partners one may lie, or may be the only one with other data; the stride
// bounds how far the latter can be.
func (b *bound) medians() (lower, upper float64) {
	if b.seen == 0 {
		return 0, 0
	}
	var sorted [boundWindow]float32
	for i, m := range b.meetings[:b.seen] {
		sorted[i] = m.distance
	}
	slices.Sort(sorted[:b.seen])
	return float64(sorted[(b.seen-1)/2]), float64(sorted[b.seen/2])
}

// find is the index of the meeting with a partner, −1 if there is none.
func (b *bound) find(partner string) int {
	return slices.IndexFunc(b.meetings[:b.seen], func(m meeting) bool { return m.partner == partner })
}

// add puts the distance to a partner into the window, in place of the partner's last one,
// and returns it as clipped; limit is the smaller of the two sides' bounds.
func (b *bound) add(partner string, distance, limit float64) float64 {
	b.way += b.moved
	b.stride = max(b.moved, strideKept*b.stride)
	at := b.find(partner)
	most := b.growth() * limit
	if b.moves {
		most = max(most, boundDrift*float64(b.stride))
	}
	if at >= 0 { // a small bound of the other side does not lower the entry
		most = max(most, float64(b.meetings[at].distance))
	}
	distance = min(distance, most, math.MaxFloat32)
	if at < 0 && b.seen < boundWindow {
		at = int(b.seen)
		b.seen++
	}
	at = max(at, 0)
	copy(b.meetings[at:b.seen], b.meetings[at+1:b.seen])
	b.meetings[b.seen-1] = meeting{partner: partner, distance: float32(distance)}
	b.age, b.met = min(b.age+1, normEvery), min(b.met+1, boundWindow)
	return distance
}

// show is add for a side that sees only the difference: shown is the distance clipped to both sides'
// bounds, and the real one may be larger. If shown reaches limit, this side's own bound for a
// partner with this trust, the models are farther apart, and the bound may grow. If it is less, the
// partner's bound may be the cause, so an entry falls only by the part that is not trusted.
func (b *bound) show(partner string, shown, limit, trust float64) float64 {
	distance := shown
	if shown >= limit {
		distance = b.growth() * limit / trust
	}
	if at := b.find(partner); at >= 0 {
		distance = max(distance, boundTrust*float64(b.meetings[at].distance))
	}
	return b.add(partner, distance, distance)
}

// growth is how many times the smaller bound a distance may enter the window.
func (b *bound) growth() float64 {
	if b.moves {
		return movingGrowth
	}
	return boundGrowth
}

// implausible tells whether a distance from the slice own cannot be that of a model, or
// is more than a float32 holds.
func implausible(distance float64, own tensor.Vector) bool {
	if distance <= implausibleRatio {
		return false
	}
	return !(distance <= min(implausibleRatio*(1+tensor.Norm2(own)), math.MaxFloat32)) // true for NaN
}

// limit is τ of a slice for a partner at this peer's site or at another, infinite if nothing is clipped. It is NaN if the slice is
// found not to be finite; not every value is checked each time. The caller holds the
// slice's lock.
func (r *Replica) limit(s *slice, across bool) float64 {
	if unclipped(r) {
		return math.Inf(1)
	}
	own := r.of(s)
	limit := s.expects(across).bound.limit(own, s.moved(own, across))
	if limit <= math.MaxFloat64 {
		return limit
	}
	return math.NaN()
}
