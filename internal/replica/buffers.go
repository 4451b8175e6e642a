package replica

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"sort"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// buffers are the further vectors that averaging gradients needs. The parts of a slice are
// guarded by its lock.
type buffers struct {
	gradient, sum tensor.Vector
	weights       []float64 // in the sum, by piece
	rounding      *rounding
	factors       *Factors
}

// UseGradients gives the replica the buffers Gradient and Sum, both empty, and returns the factors of Gradient. It must be
// called before anything else uses the replica; called again, it changes nothing.
func (r *Replica) UseGradients() *Factors {
	if r.buffers != nil {
		return r.buffers.factors
	}
	r.buffers = &buffers{
		gradient: make(tensor.Vector, len(r.values)), sum: make(tensor.Vector, len(r.values)),
		weights: make([]float64, r.pieces.count()), rounding: newRounding(len(r.values)), factors: newFactors(r.layout, r.sliceLen),
	}
	return r.buffers.factors
}

// PutRange copies the values from an offset to another, exclusive, of a gradient, which must have Len values, into Gradient: the mean
// over so many samples, with what codes have lost of the ones before. It fails with ErrDiverged if they are not finite, and
// leaves Gradient as it was.
func (r *Replica) PutRange(gradient tensor.Vector, from, to int, samples float64) error {
	r.mustFit(gradient)
	if !(samples >= 1 && samples <= wire.MaxWeight) {
		return fmt.Errorf("replica: a gradient over %g samples: want 1 to %d", samples, uint64(wire.MaxWeight))
	}
	if r.buffers == nil {
		return errNoBuffers
	}
	if !tensor.Finite(gradient[from:to]) {
		return fmt.Errorf("replica: the gradient is not finite: %w", ErrDiverged)
	}
	for i := range r.slices {
		s := &r.slices[i]
		begin, end := max(from, s.offset), min(to, s.offset+s.length)
		if begin >= end {
			continue
		}
		s.Lock()
		copy(r.buffers.gradient[begin:end], gradient[begin:end])
		r.buffers.rounding.carry(r.buffers.gradient, begin, end, samples)
		s.samples = samples
		s.Unlock()
	}
	return nil
}

// PutNothing takes the last gradient back: this side adds nothing to the sum.
func (r *Replica) PutNothing() {
	r.sweep(func(s *slice) {
		s.samples = 0
		clear(s.in(r.buffers.gradient))
	})
}

// Ready is the number of the first shared value, counted among these, from which on values of every part that begins
// there or beyond it lie at an offset or beyond it.
func (r *Replica) Ready(offset int) int {
	piece := sort.Search(r.pieces.count(), func(piece int) bool { return r.pieces.offset(r, piece) >= offset })
	if piece == 0 {
		return 0
	}
	shared := r.pieces.slice(piece - 1)
	start, end := r.pieces.span(shared, r.lengthOf(shared), piece-1, 1)
	return r.pieces.before[shared] + (start+end)/2 + 1 // beyond the middle of the piece before, by which parts are told
}

var errNoBuffers = errors.New("replica: no buffers for gradients: UseGradients has not been called")

// weightsOf are the weights of a shared slice's pieces in the sum.
func (r *Replica) weightsOf(shared int) []float64 {
	return r.buffers.weights[r.pieces.first[shared]:r.pieces.first[shared+1]]
}

// span is the run of pieces of a shared slice that lies in a part of the values.
type span struct {
	at          *slice
	first, last int // pieces, counted from the slice's first
	weights     []float64
}

// lockPart goes through the shared slices of one of so many parts, each with its lock held. Fewer than two parts
// are all values.
func (r *Replica) lockPart(part, parts int) iter.Seq[span] {
	return func(yield func(span) bool) {
		from, to := r.pieces.part(r, part, max(parts, 1))
		for i, s := range r.lockShared() {
			base, weights := r.pieces.first[i], r.weightsOf(i)
			first, last := max(from-base, 0), min(to-base, len(weights))
			if first < last && !yield(span{at: s, first: first, last: last, weights: weights[first:last]}) {
				return
			}
		}
	}
}

// in is the span's part of a vector.
func (s span) in(r *Replica, v tensor.Vector) tensor.Vector { return s.of(r, s.at.in(v)) }

// of is the span's part of what its slice has for each value; none if that has nothing.
func (s span) of(r *Replica, own tensor.Vector) tensor.Vector {
	return own[min(len(own), s.first*r.pieces.length):min(len(own), s.last*r.pieces.length)]
}

// Part is the range of all values that one of so many parts has, those that are not shared among them.
func (r *Replica) Part(part, parts int) (from, to int) {
	if parts < 2 {
		return 0, len(r.values)
	}
	bound := func(piece int) int {
		switch {
		case piece <= 0:
			return 0
		case piece >= r.pieces.count():
			return len(r.values)
		}
		return r.pieces.offset(r, piece)
	}
	first, last := r.pieces.part(r, part, parts)
	return bound(first), bound(last)
}

// Load makes Sum the Gradient times its samples, or adds that, in one of so many parts. Where it makes the sum, or is
// told to, it forgets what codes have lost of this gradient. It fails with ErrDiverged if others would refuse such a
// gradient: then it counts as none.
func (r *Replica) Load(part, parts int, add, forget bool) error {
	if r.buffers == nil {
		return nil
	}
	if !add {
		r.Clear(part, parts)
	}
	from, to := r.Part(part, parts)
	for i := range r.slices {
		s := &r.slices[i]
		if begin, end := max(from, s.offset), min(to, s.offset+s.length); begin < end {
			if err := plausible(r, s, tensor.Norm2(r.buffers.gradient[begin:end])); err != nil {
				return err
			}
		}
	}
	for s := range r.lockPart(part, parts) {
		if !add || forget {
			r.buffers.rounding.forget(func(v tensor.Vector) tensor.Vector { return s.in(r, v) })
		}
		if samples := s.at.samples; samples > 0 {
			tensor.Axpy(s.in(r, r.buffers.sum), float32(samples), s.in(r, r.buffers.gradient))
			for j := range s.weights {
				s.weights[j] += samples
			}
		}
	}
	return nil
}

// Clear empties one of so many parts of Sum.
func (r *Replica) Clear(part, parts int) {
	if r.buffers == nil {
		return
	}
	for s := range r.lockPart(part, parts) {
		clear(s.in(r, r.buffers.sum))
		clear(s.weights)
		clear(s.of(r, s.at.pushed))
	}
}

// Drain takes one of so many parts of Sum, which is empty afterwards, into dst, which must have Len values: each
// piece divided by its weight, or by weight if that is above 0. Pieces of weight 0, other parts and
// frozen ranges are zeros. Local values, which are in no sum, come from Gradient, once. It
// returns the weight of the heaviest piece.
//
// Values added to Sum meanwhile count in this Drain or in the next, piece by piece.
func (r *Replica) Drain(dst tensor.Vector, part, parts int, weight float64) (heaviest float64) {
	r.mustFit(dst)
	clear(dst)
	if r.buffers == nil {
		return 0
	}
	from, to := r.Part(part, parts)
	for i := range r.slices {
		s := &r.slices[i]
		if s.layer != notShared || s.offset < from || s.offset >= to {
			continue
		}
		s.Lock()
		if s.samples > 0 {
			copy(s.in(dst), s.in(r.buffers.gradient))
		}
		s.samples = 0
		s.Unlock()
	}
	for s := range r.lockPart(part, parts) {
		heaviest = max(heaviest, drain(r, s, s.in(r, dst), weight))
	}
	return heaviest
}

// drain empties a span of the sum into dst. The caller holds the slice's lock.
func drain(r *Replica, s span, dst tensor.Vector, weight float64) (heaviest float64) {
	sum := s.in(r, r.buffers.sum)
	copy(dst, sum)
	clear(sum)
	for piece := 0; piece < len(s.weights); {
		run := alike(s.weights[piece:])
		own := s.weights[piece]
		heaviest = max(heaviest, own)
		if weight > 0 {
			own = weight
		}
		if own > 0 {
			from, to := piece*r.pieces.length, min(len(dst), (piece+run)*r.pieces.length)
			tensor.Scale(dst[from:to], float32(1/own))
		}
		piece += run
	}
	pushed := s.of(r, s.at.pushed)
	for i, own := range pushed {
		if of := float32(s.weights[i/r.pieces.length]); own > 0 && weight <= 0 {
			dst[i] *= cmp.Or(of, 1) / (of + own) // it was divided by of, or by nothing
		}
	}
	clear(pushed)
	clear(s.weights)
	return heaviest
}

// alike is how many of the first weights are equal.
func alike(weights []float64) int {
	for i, w := range weights {
		if w != weights[0] {
			return i
		}
	}
	return len(weights)
}
