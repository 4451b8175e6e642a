package replica

import (
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// buffers are the further vectors that averaging gradients needs. The parts of a slice are
// guarded by its lock.
type buffers struct {
	gradient, sum tensor.Vector
	weights       []float64 // in the sum, by piece
	rounding      *rounding
}

// UseGradients gives the replica the buffers Gradient and Sum, both empty. It must be
// called before anything else uses the replica; called again, it does nothing.
func (r *Replica) UseGradients() {
	if r.buffers != nil {
		return
	}
	r.buffers = &buffers{
		gradient: make(tensor.Vector, len(r.values)), sum: make(tensor.Vector, len(r.values)),
		weights: make([]float64, r.pieces.count()), rounding: newRounding(len(r.values)),
	}
}

// PutGradient copies a gradient, which must have Len values, into Gradient: the mean
// over so many samples, with what codes have lost of the ones before. It fails with ErrDiverged if the gradient is not finite, and
// leaves Gradient as it was.
func (r *Replica) PutGradient(gradient tensor.Vector, samples float64) error {
	r.mustFit(gradient)
	if !(samples >= 1 && samples <= wire.MaxWeight) {
		return fmt.Errorf("replica: a gradient over %g samples: want 1 to %d", samples, uint64(wire.MaxWeight))
	}
	if r.buffers == nil {
		return errNoBuffers
	}
	if !tensor.Finite(gradient) {
		return fmt.Errorf("replica: the gradient is not finite: %w", ErrDiverged)
	}
	for i := range r.slices {
		s := &r.slices[i]
		s.Lock()
		copy(s.in(r.buffers.gradient), s.in(gradient))
		r.buffers.rounding.carry(s, s.in(r.buffers.gradient), samples)
		s.samples = samples
		s.Unlock()
	}
	return nil
}

var errNoBuffers = errors.New("replica: no buffers for gradients: UseGradients has not been called")

// weightsOf are the weights of a shared slice's pieces in the sum.
func (r *Replica) weightsOf(shared int) []float64 {
	return r.buffers.weights[r.pieces.first[shared]:r.pieces.first[shared+1]]
}

// Load makes Sum the Gradient times its samples, or adds that. It fails with ErrDiverged if
// others would refuse such a gradient: then it counts as none.
func (r *Replica) Load(add bool) error {
	if r.buffers == nil {
		return nil
	}
	if !add {
		r.Clear()
	}
	if err := r.Plausible(r.buffers.gradient); err != nil {
		return err
	}
	for i, s := range r.lockShared() {
		if !add {
			r.buffers.rounding.forget(s)
		}
		if s.samples > 0 {
			tensor.Axpy(s.in(r.buffers.sum), float32(s.samples), s.in(r.buffers.gradient))
			for j := range r.weightsOf(i) {
				r.weightsOf(i)[j] += s.samples
			}
		}
	}
	return nil
}

// Clear empties Sum.
func (r *Replica) Clear() {
	if r.buffers == nil {
		return
	}
	for i, s := range r.lockShared() {
		clear(s.in(r.buffers.sum))
		clear(r.weightsOf(i))
	}
}

// Drain takes Sum, which is empty afterwards, into dst, which must have Len values: each
// piece divided by its weight, or by weight if that is above 0. Pieces of weight 0, and
// frozen ranges, are zeros. Local values, which are in no sum, come from Gradient, once. It
// returns the weight of the heaviest piece.
//
// Values added to Sum meanwhile count in this Drain or in the next, piece by piece.
func (r *Replica) Drain(dst tensor.Vector, weight float64) (heaviest float64) {
	r.mustFit(dst)
	clear(dst)
	if r.buffers == nil {
		return 0
	}
	shared := 0
	for i := range r.slices {
		s := &r.slices[i]
		s.Lock()
		if s.layer == notShared {
			if s.samples > 0 {
				copy(s.in(dst), s.in(r.buffers.gradient))
			}
			s.samples = 0
		} else {
			heaviest = max(heaviest, r.drain(shared, s, s.in(dst), weight))
			shared++
		}
		s.Unlock()
	}
	return heaviest
}

// drain empties a shared slice's part of the sum into dst. The caller holds the
// slice's lock.
func (r *Replica) drain(shared int, s *slice, dst tensor.Vector, weight float64) (heaviest float64) {
	sum, weights := s.in(r.buffers.sum), r.weightsOf(shared)
	copy(dst, sum)
	clear(sum)
	for piece := 0; piece < len(weights); {
		run := alike(weights[piece:])
		own := weights[piece]
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
	clear(weights)
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
