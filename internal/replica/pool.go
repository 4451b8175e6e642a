package replica

import (
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/tensor"
)

// ExactTerms are those of transfers that round nothing: for machines that exchange models
// by whatever codec, and pool them in the end.
func ExactTerms() TransferTerms {
	raw, _ := coding.ByID(coding.Raw) // which every version has
	plan := coding.Uniform(raw)
	return TransferTerms{Plan: plan, Codecs: plan.Codecs()}
}

// Pool makes Sum the parameters times weight; a weight of 0 is 1. It does nothing without
// UseGradients. From then on, as after Adopt, slices in doubt are lost: to apply them would
// make the parameters differ from the merged model.
func (r *Replica) Pool(weight float64) {
	if r.buffers == nil {
		return
	}
	r.Hold()
	r.pooled = true
	r.Release()
	if weight <= 0 {
		weight = 1
	}
	for i, s := range r.lockShared() {
		copy(s.in(r.buffers.sum), r.of(s))
		if weight != 1 {
			tensor.Scale(s.in(r.buffers.sum), float32(weight))
		}
		weights := r.weightsOf(i)
		for j := range weights {
			weights[j] = weight
		}
	}
}

// Adopt makes the parameters Sum, which is empty afterwards, each piece divided by its
// weight: replicas with the same sums have the same parameters then. A piece of no
// weight leaves the parameters as they are.
func (r *Replica) Adopt() {
	if r.buffers == nil {
		return
	}
	r.Hold()
	defer r.Release()
	r.pooled = true
	for i, s := range r.lockShared() {
		r.changing(s)
		own, sum, weights := r.of(s), s.in(r.buffers.sum), r.weightsOf(i)
		for piece, weight := range weights {
			if from, to := piece*r.pieces.length, min(len(own), (piece+1)*r.pieces.length); weight > 0 {
				copy(own[from:to], sum[from:to])
				tensor.Scale(own[from:to], float32(1/weight))
			}
		}
		clear(sum)
		clear(weights)
		s.begin(own)
	}
}
