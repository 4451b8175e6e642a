package replica

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/quant"
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
	shared   []int  // indices of the slices that are exchanged, in order
	blocks   int    // of these
	longest  int    // values of the longest slice
	digest   uint64 // of the cut
	pieces   pieces
	buffers  *buffers // nil unless gradients are averaged
	layers   []quant.JointLayer
	options  Options
	pulls    pulls

	steps      sync.Mutex // held while a step is added, so that a copy holds whole steps
	copies     sync.Mutex // held while a consistent copy is made: one at a time
	generation uint64     // of the last consistent copy; guarded by copies
	capture    atomic.Pointer[capture]
}

// slice is one range of the vector, the unit of locking and of commitment.
type slice struct {
	sync.Mutex
	offset, length int
	layer          int // the joint layer, or notShared
	firstBlock     int // blocks of the shared slices before it
	ranges         []float32
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
	// Watch draws the values on which partners' pull is measured: what others cannot
	// foretell.
	Watch uint64
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
	r.digest = r.cutDigest()
	r.pieces = newPieces(r)
	r.pulls.watched = newWatched(r, options.Watch)
	return r, nil
}

// cut divides the vector into slices, in order: the joint layers, and what is local.
// What is frozen needs no lock.
func (r *Replica) cut() {
	type region struct {
		quant.Segment
		layer int
	}
	var regions []region
	r.layers = quant.JointLayers(r.layout)
	for layer, l := range r.layers {
		for _, s := range l.Segments {
			regions = append(regions, region{s, layer})
		}
	}
	for _, at := range r.layout.Ranges() {
		if at.Sharing == tensor.Local {
			regions = append(regions, region{quant.Segment{Offset: at.Offset, Len: at.Len}, notShared})
		}
	}
	sort.Slice(regions, func(i, j int) bool { return regions[i].Offset < regions[j].Offset })
	for _, p := range regions {
		for offset, end := p.Offset, p.Offset+p.Len; offset < end; offset += r.sliceLen {
			if p.layer != notShared {
				r.shared = append(r.shared, len(r.slices))
			}
			length := min(r.sliceLen, end-offset)
			r.longest = max(r.longest, length)
			r.slices = append(r.slices, slice{
				offset: offset, length: length, layer: p.layer, drift: newDrift(r.values[offset : offset+length]),
			})
			if s := &r.slices[len(r.slices)-1]; p.layer != notShared {
				s.firstBlock, s.ranges = r.blocks, make([]float32, quant.Blocks(length))
				r.blocks += len(s.ranges)
			}
		}
	}
}

// notShared stands for a joint layer where there is none.
const notShared = -1

// Cut is a digest of where the slices of an exchange begin and how long they are:
// two peers that cut their models otherwise would mistake one slice for another. It
// is the first eight bytes of the SHA-256 over the offset and the length of each, 8
// bytes in little-endian order.
func (r *Replica) Cut() uint64 { return r.digest }

func (r *Replica) cutDigest() uint64 {
	hash := sha256.New()
	var pair [16]byte
	for _, i := range r.shared {
		binary.LittleEndian.PutUint64(pair[:8], uint64(r.slices[i].offset))
		binary.LittleEndian.PutUint64(pair[8:], uint64(r.slices[i].length))
		hash.Write(pair[:])
	}
	return binary.LittleEndian.Uint64(hash.Sum(nil))
}

// JointLayers are the groups of slices that are coded alike, as a plan numbers them.
func (r *Replica) JointLayers() []quant.JointLayer { return r.layers }

// codec is what a plan has for a slice whose turn it is.
func (r *Replica) codec(plan quant.Plan, slice, turn int) quant.Codec {
	return plan.Codec(r.slices[r.shared[slice]].layer, turn)
}

// Layout is the layout of the parameters.
func (r *Replica) Layout() *tensor.Layout { return r.layout }

// Len is the number of values, those that are never exchanged included.
func (r *Replica) Len() int { return len(r.values) }

// SliceLen is the number of values in a slice; the last of a run may be shorter.
func (r *Replica) SliceLen() int { return r.sliceLen }

// SharedSlices is the number of slices in an exchange.
func (r *Replica) SharedSlices() int { return len(r.shared) }

// SharedBlocks is the number of blocks that a lattice codec would cut an exchange into.
func (r *Replica) SharedBlocks() int { return r.blocks }

// SharedLen is the number of values in an exchange.
func (r *Replica) SharedLen() int {
	total := 0
	for _, i := range r.shared {
		total += r.slices[i].length
	}
	return total
}
