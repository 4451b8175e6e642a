package replica

import "github.com/seed-97356399/murmuration/tensor"

// Defer, if wanted, keeps the parameters as they are between two calls of Commit: what steps and
// exchanges add waits for the next. So a gradient and any number of exchanges are of the
// models of one moment, in whatever order they end. Nothing is clipped then, since a round is
// to be one known product of matrices. A consistent copy is of the last Commit: a restart from it
// makes the round that was under way anew. It must be called before anything else uses the
// replica.
func (r *Replica) Defer(wanted bool) {
	if wanted {
		r.deferred = make(tensor.Vector, len(r.values))
	}
}

// Commit adds to the parameters what has waited for it.
func (r *Replica) Commit() {
	if r.deferred == nil {
		return
	}
	r.Hold()
	defer r.Release()
	r.sweep(func(s *slice) {
		r.changing(s)
		tensor.Add(r.of(s), s.in(r.deferred))
		clear(s.in(r.deferred))
	})
}

// target is where what is to be added to a slice of r goes. The caller holds the slice's lock.
func target(r *Replica, s *slice) tensor.Vector {
	if r.deferred != nil {
		return s.in(r.deferred)
	}
	r.changing(s)
	return r.of(s)
}

// unclipped tells whether r takes differences whole, however long.
func unclipped(r *Replica) bool { return r.options.Unclipped || r.deferred != nil }
