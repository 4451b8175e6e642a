package replica

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// Bounds of a slice's length, in values. A slice never exceeds one frame.
const (
	DefaultSliceLen = 32 << 10
	MaxSliceLen     = wire.MaxSliceLen
)

// Replica is one peer's copy of the model. It is safe for concurrent use: a trainer adds steps while exchanges commit slices.
type Replica struct {
	layout    *tensor.Layout
	values    tensor.Vector
	sliceLen  int
	slices    []slice
	shared    []int // indices of the slices that are exchanged, in order
	blocks    int   // of these
	longest   int   // values of the longest slice
	pieces    pieces
	buffers   *buffers      // nil unless gradients are averaged
	deferred  tensor.Vector // what waits for Commit; nil unless it is to
	layers    []coding.JointLayer
	options   Options
	biases    biases
	judgement Judgement

	steps    sync.Mutex    // held while a step is made and added, so that a copy holds whole steps
	replaced atomic.Uint64 // by other models; changes while steps is held
	pooled   bool          // the parameters are, or were, part of a sum; guarded by steps
	copies   copies
}

// Options set up a replica. The zero value is useful.
type Options struct {
	// SliceLen is the number of values in a slice, 0 for DefaultSliceLen; both ends
	// of an exchange must use the same.
	SliceLen int
	// Clock tells the time, from any origin, to measure for how long a trainer
	// waits for a slice. Without one nothing is measured.
	Clock func() time.Duration
	// Unclipped averages without clipping, whatever the distance, to measure the effect of
	// clipping.
	Unclipped bool
	// Scratch is the memory in which exchanges and transfers compute, as long as the longest
	// slice. Replicas may share it if no two of them are ever used at once. Default: each lane
	// has its own.
	Scratch tensor.Vector
	// Watch seeds the choice of the values on which partners' bias is measured; others must
	// not be able to predict it.
	Watch uint64
}

// New makes a replica of params and takes over its vector: from now on only the replica's
// methods may use it.
func New(params *tensor.Params, options Options) (*Replica, error) {
	options.SliceLen = cmp.Or(options.SliceLen, DefaultSliceLen)
	if options.SliceLen < 1 || options.SliceLen > MaxSliceLen {
		return nil, fmt.Errorf("replica: slices of %d values: want 1 to %d", options.SliceLen, MaxSliceLen)
	}
	if params == nil || params.Layout() == nil {
		return nil, errors.New("replica: no parameters")
	}
	if !tensor.Finite(params.Vector()) {
		return nil, errors.New("replica: the initial parameters hold NaN or infinite values")
	}
	if options.Clock == nil {
		options.Clock = func() time.Duration { return 0 }
	}
	r := &Replica{layout: params.Layout(), values: params.Vector(), sliceLen: options.SliceLen, options: options}
	r.cut()
	if options.Scratch != nil && len(options.Scratch) < r.longest {
		return nil, fmt.Errorf("replica: %d values to compute in, for slices of %d", len(options.Scratch), r.longest)
	}
	r.pieces = newPieces(r)
	r.biases.watched = newWatched(r, options.Watch)
	r.judgement.places = judgedPlaces(r, options.Watch)
	return r, nil
}

// cut divides the vector into slices, in order: the joint layers, and what is local.
// What is frozen needs no lock.
func (r *Replica) cut() {
	type region struct {
		coding.Segment
		layer int
	}
	var regions []region
	r.layers = coding.JointLayers(r.layout)
	for layer, l := range r.layers {
		for _, s := range l.Segments {
			regions = append(regions, region{s, layer})
		}
	}
	for _, at := range r.layout.Ranges() {
		if at.Sharing == tensor.Local {
			regions = append(regions, region{coding.Segment{Offset: at.Offset, Len: at.Len}, notShared})
		}
	}
	slices.SortFunc(regions, func(a, b region) int { return cmp.Compare(a.Offset, b.Offset) })
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
				s.firstBlock, s.here.ranges = r.blocks, make([]float32, coding.Blocks(length))
				r.blocks += len(s.here.ranges)
			}
		}
	}
}

// Cut is a digest of where the slices of an exchange begin and how long they are:
// two peers that cut their models otherwise would mistake one slice for another. It
// is the first eight bytes of the SHA-256 over the offset and the length of each, 8
// bytes in little-endian order.
func (r *Replica) Cut() uint64 {
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
func (r *Replica) JointLayers() []coding.JointLayer { return r.layers }

// codec is what a plan has for a slice whose turn it is.
func (r *Replica) codec(plan coding.Plan, slice, turn int) coding.Codec {
	return plan.Codec(r.slices[r.shared[slice]].layer, turn)
}

// Judgement judges partners by what their exchanges do.
func (r *Replica) Judgement() *Judgement { return &r.judgement }

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
func (r *Replica) SharedLen() int { return r.pieces.values }

// lengthOf is the number of values of a slice of an exchange.
func (r *Replica) lengthOf(slice int) int { return r.slices[r.shared[slice]].length }

// Snapshot copies the parameters into dst, which must have Len values. It is
// meant for a gradient: slices may be of different moments, before and after a
// commit. It returns for how long it waited for exchanges to let go of slices.
func (r *Replica) Snapshot(dst tensor.Vector) (waited time.Duration) {
	r.mustFit(dst)
	r.copyFrozen(dst)
	return r.sweep(func(s *slice) { copy(s.in(dst), r.of(s)) })
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
	return waited + r.AddHeld(delta)
}

// Hold waits until no step is being added, and keeps steps, the beginnings of consistent
// copies, and replacements of the model waiting until Release: what is done meanwhile is
// done between two steps.
func (r *Replica) Hold() { r.steps.Lock() }

// Release ends a Hold.
func (r *Replica) Release() { r.steps.Unlock() }

// AddHeld is Add for who holds the steps.
func (r *Replica) AddHeld(delta tensor.Vector) (waited time.Duration) {
	r.mustFit(delta)
	return r.sweep(func(s *slice) {
		tensor.Add(target(r, s), s.in(delta))
	})
}

// of is the part of the parameters that a slice covers. The caller holds the
// slice's lock.
func (r *Replica) of(s *slice) tensor.Vector { return s.in(r.values) }

// commit adds a pending difference to its slice. scratch has room for a slice.
func (r *Replica) commit(w *pending, scratch tensor.Vector, m *moved) error {
	s := &r.slices[r.shared[w.slice]]
	diff, err := differenceOf(w.codec.Diff, w.code(), scratch[:w.values(s.length)])
	if err != nil {
		return err
	}
	s.Lock()
	r.change(&w.part, m, &diff, 1)
	s.Unlock()
	return nil
}

// change adds sign, which is 1 or -1, times a difference to a part in an exchange. Blocks that it does not change are not exchanged:
// their own way is believed of the partner when they come again. The caller holds the slice's lock.
func (r *Replica) change(p *part, m *moved, diff *difference, sign float32) {
	s := &r.slices[r.shared[p.slice]]
	to, changed := target(r, s), diff.changes(p, s.length)
	m.before(r, p.slice, r.of(s), changed[:])
	diff.add(p, to, sign)
	m.after(r, p.slice, r.of(s))
	s.drift.mark(r.of(s), changed[:])
	s.age = 0
}

// changing is called before a slice's values change. The caller holds the slice's lock.
func (r *Replica) changing(s *slice) { r.copies.changing(s, r.of(s)) }

// Changes counts how often slices have changed.
func (r *Replica) Changes() uint64 { return r.copies.changes.Load() }

// Consistent copies the parameters into dst, which must have Len values, as they
// were at one moment between two steps, without stopping the trainer: writers
// save what they are about to change. Slices of an exchange under way may be of
// either side of it, each whole.
func (r *Replica) Consistent(dst tensor.Vector) { r.ConsistentWith(dst, func() {}) }

// ConsistentWith is Consistent, with what else is copied of the same moment: no step is
// added, and nobody holds the steps, while it runs.
func (r *Replica) ConsistentWith(dst tensor.Vector, also func()) {
	r.mustFit(dst)
	r.copies.Lock()
	defer r.copies.Unlock()
	r.copyFrozen(dst)
	r.Hold()
	r.copies.begin(dst)
	also()
	r.Release()
	r.sweep(func(s *slice) { r.copies.preserve(s, r.of(s)) })
	r.copies.capture.Store(nil)
}

// CompactShared moves the values that are exchanged to the front of full, a copy
// of all parameters, and returns that part: SharedLen values in slice order.
func (r *Replica) CompactShared(full tensor.Vector) tensor.Vector {
	n := 0
	for _, i := range r.shared {
		s := &r.slices[i]
		if n != s.offset { // where all is shared, everything is in its place
			copy(full[n:], s.in(full))
		}
		n += s.length
	}
	return full[:n]
}

// RestoreShared replaces the values that are exchanged by src, which must have
// SharedLen finite values in slice order. It is for the time before a peer takes
// part in exchanges: during one it would lose the partner's half.
func (r *Replica) RestoreShared(src tensor.Vector) error {
	return r.restore(src, 0)
}

// Replace is RestoreShared where training has begun: a step that was begun before it is
// one for another model, as Replaced tells.
func (r *Replica) Replace(src tensor.Vector) error { return r.restore(src, 1) }

// Replaced is how often the model was replaced. It does not change while the steps are
// held.
func (r *Replica) Replaced() uint64 { return r.replaced.Load() }

// restore is RestoreShared, or Replace if that counts once.
func (r *Replica) restore(src tensor.Vector, replaced uint64) error {
	if len(src) != r.SharedLen() {
		return fmt.Errorf("replica: restoring %d values into %d", len(src), r.SharedLen())
	}
	if !tensor.Finite(src) {
		return errors.New("replica: the values to restore are not all finite")
	}
	r.Hold()
	defer r.Release()
	r.replaced.Add(replaced)
	r.judgement.forget()
	for i, s := range r.lockShared() {
		r.changing(s)
		if r.buffers != nil {
			r.buffers.rounding.forget(s.in)
		}
		if r.deferred != nil { // what waits belongs to the former model
			clear(s.in(r.deferred))
		}
		copy(r.of(s), src)
		s.begin(r.of(s))
		r.biases.watched.mark(i, r.of(s))
		src = src[s.length:]
	}
	return nil
}
