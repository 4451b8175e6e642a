package replica

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

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
	options  Options

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
	bound          bound
	drift          drift
}

// Options set up a replica. The zero value is useful.
type Options struct {
	// SliceLen is the number of values in a slice, 0 for DefaultSliceLen; both ends
	// of an exchange must use the same.
	SliceLen int
	// Clock tells the time, from any origin, to measure for how long a trainer
	// waits for a slice. Without one nothing is measured.
	Clock func() time.Duration
	// Unclipped believes every partner whatever the distance: plain averaging, to
	// measure what clipping is worth.
	Unclipped bool
}

// capture is a consistent copy in the making.
type capture struct {
	generation uint64
	into       tensor.Vector
}

// New makes a replica of params, whose vector it takes over: from now on only
// the replica's methods may touch it.
func New(params *tensor.Params, options Options) (*Replica, error) {
	if options.SliceLen == 0 {
		options.SliceLen = DefaultSliceLen
	}
	if options.SliceLen < 1 || options.SliceLen > MaxSliceLen {
		return nil, fmt.Errorf("replica: slices of %d values: want 1 to %d", options.SliceLen, MaxSliceLen)
	}
	if params == nil || params.Layout() == nil {
		return nil, errors.New("replica: no parameters")
	}
	if !tensor.Finite(params.Vector()) {
		return nil, errors.New("replica: the initial parameters hold NaN or infinite values")
	}
	r := &Replica{layout: params.Layout(), values: params.Vector(), sliceLen: options.SliceLen, options: options}
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
				length := min(r.sliceLen, end-offset)
				own := r.values[offset : offset+length]
				r.slices = append(r.slices, slice{offset: offset, length: length, drift: newDrift(own)})
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
