package replica

import (
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/tensor"
)

// A partner's model is believed as far as models usually are apart: of a difference of
// norm D only f = min(1, τ_A/D, τ_P/D) is taken, by both sides (self-centred clipping, He,
// Karimireddy and Jaggi, 2022). A side's bound τ is the largest of three, slice by slice:
//
//   - nearly three times what the slice has gone by itself since its last exchange: two
//     models that have gone as far each, in opposite directions, are that far apart. Nobody
//     else has a hand in it, and it falls with the learning rate.
//   - as much of the stride, which is the longest such way lately, but no more than the median
//     of the last distances, one of each partner. Models that have parted, each where it
//     wants to be, do not move any more, and would not believe each other without it.
//   - three quarters of that median. It is how a slice that moves little follows others that
//     move much. No more, for a liar that pushes makes honest models part: a bound of all of
//     their distance grows with what it allows.
//
// How often the same partner may come is the machine's to limit. Of one whose differences
// all point the same way the bound is smaller (pull.go).

const (
	// boundWindow is the number of partners whose last distances are kept.
	boundWindow = 9
	// boundTrust is the share of the median of distances that is believed.
	boundTrust = 0.75
	// strideKept is what an exchange leaves of the stride, unless the slice has gone
	// farther. A longer memory lags behind the learning rate, and leaves a liar more at the
	// end of a run.
	strideKept = 0.987
	// boundGrowth is how many times the smaller bound a distance may enter the windows,
	// so that a peer that a liar has pushed away does not come to believe more than the
	// others do. The bound of a slice that has not moved yet can follow models that are
	// apart, doubling with each exchange that needs it. Once it moves, its own way makes it
	// larger at once, and what most of the last partners show by an eighth.
	boundGrowth, movingGrowth = 2 / boundTrust, 1.5
	// boundFloor is the share of its own norm by which a slice may differ in any case:
	// from there the bound grows for models that were equal for long. One that has not
	// moved as far by itself since the beginning as the higher floor has no training to
	// lose, and little to tell how far others move: it believes all of the median.
	boundFloor, unmovedFloor = 1e-4, 0.02
	// normEvery is after how many distances the norm for that is taken anew; after each of
	// the first boundWindow it is too.
	normEvery = 16
	// boundLeast is the least bound: below it, rounding a float32 may change it by
	// more than codecSlack, and an honest partner would be blamed for that.
	boundLeast = 1e-30
	// boundUnknown is the bound of a slice of zeros that has met nothing but zeros.
	// Its norm says nothing about the models of the run, so the bound is absolute; at
	// first it doubles with each exchange that needs it.
	boundUnknown = 1
	// codecSlack is by how much a coded difference may be longer than the exact one.
	codecSlack = 1.01
	// roundingSlack is the part of it that rounding to the smallest values of a codec may
	// take.
	roundingSlack = (codecSlack - 1) / 2
	// implausibleRatio is how many times farther than its own norm, or than one, a
	// slice's counterpart may be: beyond, it is no model of this run.
	implausibleRatio = 1e6
)

// bound is the window of a slice's distances; the slice's lock guards it.
type bound struct {
	meetings [boundWindow]meeting // the oldest first
	seen     uint8                // at most boundWindow
	moved    float32              // by the slice itself since its last exchange, when that was last asked for
	stride   float32              // as the last exchange left it
	way      float32              // gone from exchange to exchange, together
	moves    bool                 // the way has been longer than a share of the norm
	age      uint8                // distances since norm was taken
	met      uint8                // distances in all, at most boundWindow
	norm     float64              // of the slice, about
}

// meeting is the last one with a partner.
type meeting struct {
	partner  string
	distance float32 // as it was believed
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

// medians are those of the distances, which differ if their number is even: of two
// partners one may lie, or be the only one with other data. The stride tells how far the
// latter can be.
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

// find is where the meeting with a partner is, −1 if nowhere.
func (b *bound) find(partner string) int {
	return slices.IndexFunc(b.meetings[:b.seen], func(m meeting) bool { return m.partner == partner })
}

// add takes the distance to a partner into the window, in the place of the last one to
// it, and returns it as it entered; limit is the smaller of the two sides' bounds.
func (b *bound) add(partner string, distance, limit float64) float64 {
	b.way += b.moved
	b.stride = max(b.moved, strideKept*b.stride)
	at := b.find(partner)
	most := b.growth() * limit
	if b.moves {
		most = max(most, boundDrift*float64(b.stride))
	}
	if at >= 0 { // a bound that is small on the other side takes nothing back
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

// show is add where no more than a difference tells how far a partner is, which may claim any
// distance: shown at least, clipped to both sides' bounds. Where that is all of limit, which is this
// side's own for a partner with a share of the trust, models are farther apart than it, and the
// bound may grow. Where it is less the partner's bound may be why: an entry falls by no
// more than is not believed of it.
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

// limit is τ of a slice, infinite if the replica does not clip. It is
// NaN if the slice turns out not to be finite, for which not every value is looked at each
// time. The caller holds the slice's lock.
func (r *Replica) limit(s *slice) float64 {
	if r.options.Unclipped {
		return math.Inf(1)
	}
	own := r.of(s)
	limit := s.bound.limit(own, s.drift.moved(own))
	if limit <= math.MaxFloat64 {
		return limit
	}
	return math.NaN()
}

// remember takes the distance to a partner into a slice's window and returns it as far as
// it is believed; limit is the smaller of the two sides' bounds. The caller holds the
// slice's lock.
func (r *Replica) remember(s *slice, partner string, distance, limit float64) float64 {
	if r.options.Unclipped {
		return distance
	}
	return s.bound.add(partner, distance, limit)
}
