package replica

import (
	"iter"
	"math"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/tensor"
)

const (
	// driftSample is the most values of a slice that are kept to see how far it has
	// moved.
	driftSample = 256
	// boundDrift is the distance of a partner's slice that is accepted in any case, in
	// strides of this slice: two models that have each moved a stride in opposite
	// directions are two strides apart, and some distance remains from earlier exchanges.
	boundDrift = 2.75
)

// drift is a sample of a slice's values, each after the last exchange of its block, from which to estimate how
// far local steps have moved the slice since.
type drift []float32

// newDrift makes a drift of a slice as it is.
func newDrift(own tensor.Vector) drift {
	d := make(drift, min(len(own), driftSample))
	d.mark(own, nil)
	return d
}

// places yields the index in the sample and the position in a slice of n values: one in
// each of equal parts, each a little farther on, so that not all are in one column of a
// matrix. It divides only once.
func (d drift) places(n int) iter.Seq2[int, int] {
	return func(yield func(i, at int) bool) {
		part, extra := n/len(d), n%len(d)
		from, owed, on := 0, 0, 0
		for i := range d {
			if !yield(i, from+on) {
				return
			}
			if from, owed = from+part, owed+extra; owed >= len(d) {
				from, owed = from+1, owed-len(d)
			}
			if on++; on == part {
				on = 0
			}
		}
	}
}

// mark takes the present slice as the origin of its movement, or some of its blocks; nil is all.
func (d drift) mark(own tensor.Vector, blocks coding.Set) {
	for i, at := range d.places(len(own)) {
		if blocks == nil || blocks.Has(at/coding.BlockLen) {
			d[i] = own[at]
		}
	}
}

// moved estimates the norm of the slice's movement since mark. It is exact for
// slices of up to driftSample values.
func (d drift) moved(own tensor.Vector) float64 { return d.beyond(own, nil) }

// beyond is moved with what the sampled values have moved before, unless that is nil.
func (d drift) beyond(own tensor.Vector, before []float32) float64 {
	sum := 0.0
	for i, at := range d.places(len(own)) {
		way := float64(own[at]) - float64(d[i])
		if before != nil {
			way += float64(before[i])
		}
		sum += way * way
	}
	return math.Sqrt(sum * float64(len(own)) / float64(len(d)))
}

// Moved estimates how far the values that are exchanged have moved by themselves, each
// slice since its last exchange.
func (r *Replica) Moved() float64 {
	sum := 0.0
	for _, s := range r.lockShared() {
		moved := s.drift.moved(r.of(s))
		sum += moved * moved
	}
	return math.Sqrt(sum)
}
