package replica

import (
	"fmt"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// Run is a run of values of a replica, which may lie in several slices.
type Run struct {
	replica      *Replica
	first, count int
}

// Run is the run of so many values from a first one on.
func (r *Replica) Run(first, count int) Run { return Run{r, first, count} }

// portion is what a slice has of a run of values: its values from one to another, which begin at a place in the run.
type portion struct {
	of           *slice
	from, to, at int
}

func (p portion) in(run tensor.Vector) tensor.Vector { return run[p.at : p.at+p.to-p.from] }

// lock goes through the shared slices that have some of the run, each with its lock held.
func (v Run) lock(yield func(portion) bool) {
	for _, at := range v.replica.shared {
		s := &v.replica.slices[at]
		from, to := max(v.first-s.offset, 0), min(v.first+v.count-s.offset, s.length)
		if from >= to {
			continue
		}
		s.Lock()
		more := yield(portion{of: s, from: from, to: to, at: s.offset + from - v.first})
		s.Unlock()
		if !more {
			return
		}
	}
}

// Shared tells whether all of the values are exchanged.
func (v Run) Shared() bool {
	shared := 0
	for p := range v.lock {
		shared += p.to - p.from
	}
	return shared == v.count
}

// Read copies the values, which are all exchanged, into dst. Slices may be of different moments.
func (v Run) Read(dst tensor.Vector) {
	for p := range v.lock {
		copy(p.in(dst), v.replica.of(p.of)[p.from:])
	}
}

// AddGradient adds a gradient for the values, the mean over so many samples, to Sum: there it counts beside gradients
// for all values, and elsewhere nothing changes. It changes nothing if it fails, with ErrImplausible if the gradient or
// its weight are not such as a member can have.
func (v Run) AddGradient(gradient tensor.Vector, samples float64) error {
	r := v.replica
	switch {
	case r.buffers == nil:
		return errNoBuffers
	case !tensor.Finite(gradient) || !(samples >= 1 && samples <= wire.MaxWeight):
		return fmt.Errorf("a gradient for %d values from %d on, over %g samples: %w", v.count, v.first, samples, ErrImplausible)
	}
	for p := range v.lock {
		norm, heaviest := tensor.Norm2(p.in(gradient)), float32(0)
		for _, w := range p.weights() {
			heaviest = max(heaviest, w)
		}
		if implausible(norm, r.of(p.of)) || float64(heaviest)+samples > wire.MaxWeight {
			return fmt.Errorf("a gradient of norm %g over %g samples, for values from %d on: %w", norm, samples, p.of.offset+p.from, ErrImplausible)
		}
	}
	for p := range v.lock {
		tensor.Axpy(p.of.in(r.buffers.sum)[p.from:p.to], float32(samples), p.in(gradient))
		if p.of.pushed == nil {
			p.of.pushed = make(tensor.Vector, p.of.length)
		}
		for i := range p.weights() {
			p.weights()[i] += float32(samples)
		}
	}
	return nil
}

// weights are those of what was added for the portion; none if nothing was for its slice.
func (p portion) weights() tensor.Vector {
	if p.of.pushed == nil {
		return nil
	}
	return p.of.pushed[p.from:p.to]
}
