package replica

import (
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/tensor"
)

// A partner's model is believed as far as models usually are apart. Each slice
// keeps the last distances to partners' slices; their median τ bounds how far an
// exchange may move it: of a difference of norm D only f = min(1, τ_A/D, τ_P/D) is
// taken, by both sides (self-centred clipping, He, Karimireddy and Jaggi, 2022). A
// distance enters both windows as at most twice the smaller bound. So liars that
// are in fewer than half of a slice's last exchanges leave τ among the distances of
// honest partners. One that is in most of them can double it every five exchanges:
// how often the same partner may come is the caller's to limit.

const (
	// boundWindow is the number of distances whose median bounds the next.
	boundWindow = 9
	// boundGrowth is how far beyond the bound a distance may enter the window: the
	// bound can follow models that drift apart, doubling in five exchanges.
	boundGrowth = 2
	// boundFloor is the share of its own norm by which a slice may differ in any
	// case. Without it a peer whose data are unlike the others' is clipped ever more
	// as those agree ever better, and models that once were equal could never become
	// different.
	boundFloor = 0.02
	// normEvery is after how many distances the norm for that is taken anew.
	normEvery = 16
	// boundLeast is the least bound: below it, rounding a float32 may change it by
	// more than codecSlack, and an honest partner would be blamed for that.
	boundLeast = 1e-30
	// boundUnknown is the bound of a slice of zeros that has met nothing but zeros.
	// Its norm says nothing about the models of the run, so the bound is absolute; at
	// first it doubles with each exchange that needs it.
	boundUnknown = 1
	// codecSlack is by how much a coded difference may be longer than the exact one.
	// Raw and bf16 need less; a coarser codec would need more.
	codecSlack = 1.01
	// absurdRatio is how many times farther than its own norm, or than one, a
	// slice's counterpart may be: beyond, it is no model of this run.
	absurdRatio = 1e6
)

// bound is the window of a slice's distances; the slice's lock guards it.
type bound struct {
	distances [boundWindow]float32
	seen      uint8 // at most boundWindow
	oldest    uint8
	age       uint8   // distances since norm was taken
	norm      float64 // of the slice, about
}

// limit is τ for the values own of the slice: the median of the distances seen, so
// many as there are, but no less than a share of the norm, which is not taken each
// time.
func (b *bound) limit(own tensor.Vector) float64 {
	if b.seen < boundWindow || b.age >= normEvery || b.norm == 0 {
		b.norm, b.age = tensor.Norm2(own), 0
	}
	sorted := b.distances // zeros beyond those seen
	slices.Sort(sorted[:b.seen])
	limit := max(float64(sorted[b.seen/2]), boundFloor*b.norm)
	if limit < boundLeast {
		return boundUnknown
	}
	return limit
}

// add takes a distance into the window and returns it as it entered; limit is the
// smaller of the two sides' bounds.
func (b *bound) add(distance, limit float64) float64 {
	distance = min(distance, boundGrowth*limit, math.MaxFloat32)
	b.distances[b.oldest] = float32(distance)
	b.oldest = (b.oldest + 1) % boundWindow
	b.seen = min(b.seen+1, boundWindow)
	b.age = min(b.age+1, normEvery)
	return distance
}

// absurd tells whether a distance from the slice own cannot be that of a model, or
// is more than a float32 holds.
func absurd(distance float64, own tensor.Vector) bool {
	if distance <= absurdRatio {
		return false
	}
	return !(distance <= min(absurdRatio*(1+tensor.Norm2(own)), math.MaxFloat32)) // true for NaN
}

// limit is τ of a slice, no less than boundDrift times what the slice has moved by
// itself, and infinite if the replica does not clip. It is NaN if the slice turns out
// not to be finite, for which not every value is looked at each time. The caller
// holds the slice's lock.
func (r *Replica) limit(s *slice) float64 {
	if r.options.Unclipped {
		return math.Inf(1)
	}
	own := r.of(s)
	limit := max(s.bound.limit(own), boundDrift*s.drift.moved(own))
	if limit <= math.MaxFloat64 {
		return limit
	}
	return math.NaN()
}

// remember takes a distance into a slice's window and returns it as far as it is
// believed; limit is the smaller of the two sides' bounds. The caller holds the
// slice's lock.
func (r *Replica) remember(s *slice, distance, limit float64) float64 {
	if r.options.Unclipped {
		return distance
	}
	return s.bound.add(distance, limit)
}
