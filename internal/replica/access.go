package replica

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/tensor"
)

// Snapshot copies the parameters into dst, which must have Len values. It is
// meant for a gradient: slices may be of different moments, before and after a
// commit. It returns for how long it waited for exchanges to let go of slices.
func (r *Replica) Snapshot(dst tensor.Vector) (waited time.Duration) {
	r.mustFit(dst)
	r.copyFrozen(dst)
	return r.sweep(func(s *slice) { copy(dst[s.offset:s.offset+s.length], r.of(s)) })
}

// maxDeferred bounds the slices that a sweep leaves for last.
const maxDeferred = 32

// sweep calls do for every slice, with its lock held, in an order that keeps the
// trainer from waiting: a slice that an exchange is at work on is left for last. It
// returns for how long it waited all the same.
func (r *Replica) sweep(do func(*slice)) (waited time.Duration) {
	var deferred [maxDeferred]*slice
	busy := 0
	for i := range r.slices {
		s := &r.slices[i]
		if !s.TryLock() {
			if busy < maxDeferred {
				deferred[busy] = s
				busy++
				continue
			}
			waited += r.await(s)
		}
		do(s)
		s.Unlock()
	}
	for _, s := range deferred[:busy] {
		waited += r.await(s)
		do(s)
		s.Unlock()
	}
	return waited
}

// locker is a mutex, which await takes.
type locker interface {
	Lock()
	TryLock() bool
}

// await locks and returns for how long that had to be waited for.
func (r *Replica) await(l locker) time.Duration {
	if l.TryLock() {
		return 0
	}
	if r.options.Clock == nil {
		l.Lock()
		return 0
	}
	began := r.options.Clock()
	l.Lock()
	return r.options.Clock() - began
}

// mustFit panics, before anything is locked, if a caller's vector has not as many
// values as the parameters: like an index out of range, that is a mistake of the
// program.
func (r *Replica) mustFit(v tensor.Vector) {
	if len(v) != len(r.values) {
		panic(fmt.Sprintf("replica: a vector of %d values for %d parameters", len(v), len(r.values)))
	}
}

// copyFrozen copies what no slice covers, which nothing ever writes.
func (r *Replica) copyFrozen(dst tensor.Vector) {
	for i := range r.layout.Count() {
		if at := r.layout.At(i); at.Sharing == tensor.Frozen {
			copy(dst[at.Offset:at.Offset+at.Len], r.values[at.Offset:])
		}
	}
}

// Add adds a step to the parameters. Frozen ranges stay as they are. It returns
// for how long it waited for exchanges to let go of slices.
func (r *Replica) Add(delta tensor.Vector) (waited time.Duration) {
	r.mustFit(delta)
	waited = r.await(&r.steps)
	defer r.steps.Unlock()
	return waited + r.sweep(func(s *slice) {
		r.preserve(s)
		tensor.Add(r.of(s), delta[s.offset:s.offset+s.length])
	})
}

// of is the part of the parameters that a slice covers. The caller holds the
// slice's lock.
func (r *Replica) of(s *slice) tensor.Vector { return r.values[s.offset : s.offset+s.length] }

// commit adds a pending difference to its slice. scratch has room for a slice.
func (r *Replica) commit(w *pending, scratch tensor.Vector, m *moves) error {
	s := &r.slices[r.shared[w.slice]]
	diff, err := decoded(w.codec.Diff, w.code(), scratch[:w.values(s.length)], nil)
	if err != nil {
		return err
	}
	s.Lock()
	r.preserve(s)
	r.pulls.watched.add(m, w.slice, r.of(s), -1)
	w.add(r.of(s), diff)
	r.pulls.watched.add(m, w.slice, r.of(s), 1)
	s.drift.mark(r.of(s))
	s.Unlock()
	return nil
}

// preserve saves a slice's values for the consistent copy in the making, before
// they change. The caller holds the slice's lock.
func (r *Replica) preserve(s *slice) {
	c := r.capture.Load()
	if c == nil || s.captured == c.generation {
		return
	}
	copy(c.into[s.offset:s.offset+s.length], r.values[s.offset:])
	s.captured = c.generation
}

// Consistent copies the parameters into dst, which must have Len values, as they
// were at one moment between two steps, without stopping the trainer: writers
// save what they are about to change. Slices of an exchange under way may be of
// either side of it, each whole.
func (r *Replica) Consistent(dst tensor.Vector) {
	r.ConsistentAt(dst, func(begin func()) { begin() })
}

// ConsistentAt is Consistent at a moment of the caller's: moment is called, and must call
// begin once, at a time when whoever adds steps rests. The copy is of then, and is made
// once moment has returned.
func (r *Replica) ConsistentAt(dst tensor.Vector, moment func(begin func())) {
	r.mustFit(dst)
	r.copies.Lock()
	defer r.copies.Unlock()
	r.copyFrozen(dst)
	r.generation++
	moment(func() {
		r.steps.Lock()
		defer r.steps.Unlock()
		r.capture.Store(&capture{generation: r.generation, into: dst})
	})
	for i := range r.slices {
		s := &r.slices[i]
		s.Lock()
		r.preserve(s)
		s.Unlock()
	}
	r.capture.Store(nil)
}

// CompactShared moves the values that are exchanged to the front of full, a copy
// of all parameters, and returns that part: SharedLen values in slice order.
func (r *Replica) CompactShared(full tensor.Vector) tensor.Vector {
	n := 0
	for _, i := range r.shared {
		s := &r.slices[i]
		if n != s.offset { // where all is shared, everything is in its place
			copy(full[n:], full[s.offset:s.offset+s.length])
		}
		n += s.length
	}
	return full[:n]
}

// RestoreShared replaces the values that are exchanged by src, which must have
// SharedLen finite values in slice order. It is for the time before a peer takes
// part in exchanges: during one it would lose the partner's half.
func (r *Replica) RestoreShared(src tensor.Vector) error {
	if len(src) != r.SharedLen() {
		return fmt.Errorf("replica: restoring %d values into %d", len(src), r.SharedLen())
	}
	if !tensor.Finite(src) {
		return errors.New("replica: the values to restore are not all finite")
	}
	r.steps.Lock()
	defer r.steps.Unlock()
	for _, i := range r.shared {
		s := &r.slices[i]
		s.Lock()
		r.preserve(s)
		copy(r.of(s), src)
		s.drift.mark(r.of(s))
		s.Unlock()
		src = src[s.length:]
	}
	return nil
}
