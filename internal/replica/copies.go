package replica

import (
	"sync"
	"sync/atomic"

	"github.com/seed-97356399/murmuration/tensor"
)

// copies makes consistent copies of the parameters, one at a time, under its lock: each
// writer saves a slice before it changes it.
type copies struct {
	sync.Mutex
	generation uint64 // of the last copy; guarded by the lock
	capture    atomic.Pointer[capture]
	changes    atomic.Uint64 // of slices
}

// capture is a consistent copy in the making.
type capture struct {
	generation uint64
	into       tensor.Vector
}

// begin begins a copy. The lock is held.
func (c *copies) begin(into tensor.Vector) {
	c.generation++
	c.capture.Store(&capture{generation: c.generation, into: into})
}

// changing is called before the values of a slice change. The caller holds the slice's lock.
func (c *copies) changing(s *slice, values tensor.Vector) {
	c.preserve(s, values)
	c.changes.Add(1) // after preserve: a copy that begins in between then has an older version
}

// preserve saves a slice's values for the copy in the making, unless it has them. The caller
// holds the slice's lock.
func (c *copies) preserve(s *slice, values tensor.Vector) {
	now := c.capture.Load()
	if now == nil || s.captured == now.generation {
		return
	}
	copy(s.in(now.into), values)
	s.captured = now.generation
}
