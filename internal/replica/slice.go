package replica

import (
	"iter"
	"sync"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/tensor"
)

// slice is one range of the vector, the unit of locking and of commitment.
type slice struct {
	sync.Mutex
	offset, length int
	layer          int           // the joint layer, or notShared
	firstBlock     int           // blocks of the shared slices before it
	age            int           // exchanges initiated since it was last exchanged
	captured       uint64        // the generation of the last capture that holds it
	samples        float64       // in its part of the gradient; 0 is no gradient
	pushed         tensor.Vector // weights, by value, of gradients for some values that are in the sum; nil until there are any
	drift          drift
	here           expectation // of partners at this peer's site
	apart          *apart      // of those at other sites; nil before the first
}

// expects is what the slice expects of partners at this peer's site, or at others. The caller holds its lock.
func (s *slice) expects(across bool) *expectation {
	if !across {
		return &s.here
	}
	if s.apart == nil {
		s.apart = &apart{expectation: expectation{ranges: make([]float32, len(s.here.ranges))}, way: make([]float32, len(s.drift))}
	}
	return &s.apart.expectation
}

// moved is how far own steps have moved the slice, of these values, since the last exchange with anybody, or with
// another site. The caller holds its lock.
func (s *slice) moved(own tensor.Vector, across bool) float64 {
	if !across || s.apart == nil {
		return s.drift.moved(own)
	}
	return s.drift.beyond(own, s.apart.way)
}

// expectation is what a slice has seen of partners' models, by which it judges the next.
type expectation struct {
	ranges []float32
	bound  bound
}

// apart is the expectation of models at other sites. Way is how far the sampled values had moved by own steps
// since the last exchange with one, when any exchange last changed the slice.
type apart struct {
	expectation
	way []float32
}

// passed takes an exchange that is about to change blocks of the slice into account.
func (a *apart) passed(s *slice, own tensor.Vector, blocks coding.Set, across bool) {
	for i, at := range s.drift.places(len(own)) {
		switch {
		case !blocks.Has(at / coding.BlockLen):
		case across:
			a.way[i] = 0
		default:
			a.way[i] += own[at] - s.drift[i]
		}
	}
}

// begin takes the slice's values as those of another model, whose movement begins. The caller holds its lock.
func (s *slice) begin(own tensor.Vector) {
	s.drift.mark(own, nil)
	if s.apart != nil {
		clear(s.apart.way)
	}
}

// notShared stands for a joint layer where there is none.
const notShared = -1

// in is the slice's part of a vector.
func (s *slice) in(v tensor.Vector) tensor.Vector { return v[s.offset : s.offset+s.length] }

// scratch is room for the longest slice: own is what the caller had for the replica before.
func (r *Replica) scratch(own tensor.Vector) tensor.Vector {
	if r.options.Scratch != nil {
		return r.options.Scratch
	}
	return ring(own, r.longest)
}

// lockShared goes through the slices that are exchanged, each with its lock held.
func (r *Replica) lockShared() iter.Seq2[int, *slice] {
	return func(yield func(shared int, s *slice) bool) {
		for i, at := range r.shared {
			s := &r.slices[at]
			s.Lock()
			more := yield(i, s)
			s.Unlock()
			if !more {
				return
			}
		}
	}
}

// track takes the largest differences seen in a part's blocks into the ranges. The caller holds the slice's lock.
func (e *expectation) track(p *part, seen sighting) {
	if len(seen.peaks) == 0 {
		return
	}
	which, next := p.which(), 0
	for i := range e.ranges {
		if which != nil && !which.Has(i) {
			continue
		}
		if !seen.failed.Has(i) {
			e.trackBlock(i, float64(seen.peaks[next]), 1)
		}
		next++
	}
}

// rangeGrowth is how many times its range a block's may be after one exchange, in any
// case. More, and a liar among several partners makes ranges grow faster than the others
// take off again; less, and blocks of honest partners fail again and again.
const rangeGrowth = 1.5

// trackBlock takes the largest difference seen in a block into its range, of which a
// share is believed: that by which the slice is clipped. A liar is not to make lattices
// so coarse that honest partners tell each other nothing with them, and an honest partner
// that is far away must not fail again and again: what exceeds the share comes in steps.
func (e *expectation) trackBlock(i int, seen, share float64) {
	own := e.ranges[i]
	e.ranges[i] = coding.Track(own, float32(min(seen, max(share*seen, rangeGrowth*float64(own)))))
}
