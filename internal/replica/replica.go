// Package replica owns a peer's parameters and carries out the slices of an
// exchange on them: read a slice, encode it, decode the partner's, add the
// difference. It does no I/O: frames come and go as byte slices, so that the
// same code runs under a real network and in simulation.
//
// The vector is cut into slices, each with a lock that is held for one slice's
// arithmetic and never across I/O. Every change is an addition, so gradient
// steps and exchanges may overlap freely and none is lost: the two ends of an
// exchange add the same numbers with opposite signs, and their sum stays what
// it was, whatever the codec's error or the delay.
//
// Initiator and Responder are the two sides of an exchange. Who exchanges with
// whom is decided in package averaging; the streams are package peer's.
package replica

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// Bounds of a slice's length, in values. A slice never exceeds one frame.
const (
	DefaultSliceLen = 32 << 10
	MaxSliceLen     = wire.MaxSliceLen
)

// Replica is one peer's copy of the model. It is safe for concurrent use: a
// trainer adds steps while exchanges commit slices.
type Replica struct {
	layout   *tensor.Layout
	values   tensor.Vector
	sliceLen int
	slices   []slice
	shared   []int // indices of the slices that are exchanged, in order

	steps      sync.Mutex // held while a step is added, so that a copy holds whole steps
	copies     sync.Mutex // held while a consistent copy is made: one at a time
	generation uint64     // of the last consistent copy; guarded by copies
	capture    atomic.Pointer[capture]
}

// slice is one range of the vector, the unit of locking and of commitment.
type slice struct {
	sync.Mutex
	offset, length int
	captured       uint64 // the generation of the last capture that holds it
}

// capture is a consistent copy in the making.
type capture struct {
	generation uint64
	into       tensor.Vector
}

// New makes a replica of params, whose vector it takes over: from now on only
// the replica's methods may touch it. sliceLen is the number of values in a
// slice, 0 for DefaultSliceLen; both ends of an exchange must use the same.
func New(params *tensor.Params, sliceLen int) (*Replica, error) {
	if sliceLen == 0 {
		sliceLen = DefaultSliceLen
	}
	if sliceLen < 1 || sliceLen > MaxSliceLen {
		return nil, fmt.Errorf("replica: slices of %d values: want 1 to %d", sliceLen, MaxSliceLen)
	}
	if params == nil || params.Layout() == nil {
		return nil, errors.New("replica: no parameters")
	}
	if !tensor.Finite(params.Vector()) {
		return nil, errors.New("replica: the initial parameters hold NaN or infinite values")
	}
	r := &Replica{layout: params.Layout(), values: params.Vector(), sliceLen: sliceLen}
	r.cut()
	return r, nil
}

// cut divides each run of ranges that are shared alike into slices.
func (r *Replica) cut() {
	for i := 0; i < r.layout.Count(); {
		first := r.layout.At(i)
		end := first.Offset + first.Len
		for i++; i < r.layout.Count() && r.layout.At(i).Sharing == first.Sharing; i++ {
			end += r.layout.At(i).Len
		}
		for offset := first.Offset; offset < end; offset += r.sliceLen {
			if first.Sharing == tensor.Shared {
				r.shared = append(r.shared, len(r.slices))
			}
			if first.Sharing != tensor.Frozen {
				r.slices = append(r.slices, slice{offset: offset, length: min(r.sliceLen, end-offset)})
			}
		}
	}
}

// Layout is the layout of the parameters.
func (r *Replica) Layout() *tensor.Layout { return r.layout }

// Len is the number of values, those that are never exchanged included.
func (r *Replica) Len() int { return len(r.values) }

// SliceLen is the number of values in a slice; the last of a run may be shorter.
func (r *Replica) SliceLen() int { return r.sliceLen }

// SharedSlices is the number of slices in an exchange.
func (r *Replica) SharedSlices() int { return len(r.shared) }

// SharedLen is the number of values in an exchange.
func (r *Replica) SharedLen() int {
	total := 0
	for _, i := range r.shared {
		total += r.slices[i].length
	}
	return total
}

// Snapshot copies the parameters into dst, which must have Len values. It is
// meant for a gradient: slices may be of different moments, before and after a
// commit.
func (r *Replica) Snapshot(dst tensor.Vector) {
	r.mustFit(dst)
	r.copyFrozen(dst)
	for i := range r.slices {
		s := &r.slices[i]
		s.Lock()
		copy(dst[s.offset:s.offset+s.length], r.values[s.offset:])
		s.Unlock()
	}
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

// Add adds a step to the parameters. Frozen ranges stay as they are.
func (r *Replica) Add(delta tensor.Vector) {
	r.mustFit(delta)
	r.steps.Lock()
	defer r.steps.Unlock()
	for i := range r.slices {
		r.addSlice(&r.slices[i], delta[r.slices[i].offset:])
	}
}

// addSlice adds the first values of delta to a slice.
func (r *Replica) addSlice(s *slice, delta tensor.Vector) {
	s.Lock()
	r.preserve(s)
	tensor.Add(r.values[s.offset:s.offset+s.length], delta[:s.length])
	s.Unlock()
}

// subSlice subtracts the first values of delta from a slice.
func (r *Replica) subSlice(s *slice, delta tensor.Vector) {
	s.Lock()
	r.preserve(s)
	tensor.Sub(r.values[s.offset:s.offset+s.length], delta[:s.length])
	s.Unlock()
}

// readSlice copies a slice into dst and returns the part of dst it fills.
func (r *Replica) readSlice(s *slice, dst tensor.Vector) tensor.Vector {
	dst = dst[:s.length]
	s.Lock()
	copy(dst, r.values[s.offset:])
	s.Unlock()
	return dst
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
	r.mustFit(dst)
	r.copies.Lock()
	defer r.copies.Unlock()
	r.copyFrozen(dst)
	r.generation++
	r.steps.Lock()
	r.capture.Store(&capture{generation: r.generation, into: dst})
	r.steps.Unlock()
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
		n += copy(full[n:], full[s.offset:s.offset+s.length])
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
		copy(r.values[s.offset:s.offset+s.length], src)
		s.Unlock()
		src = src[s.length:]
	}
	return nil
}
