package stateserver

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// How long a frozen copy is given to further joiners. A copy older than frozenMost is
// replaced for the next joiner. So is one with fewer steps than the next joiner asks for,
// but not before it is frozenLeast old: a stranger that repeatedly asks for the newest
// state, or leaves each time it has it, must not keep this peer copying.
const (
	frozenLeast = time.Second
	frozenMost  = time.Minute
)

// errRetired: the frozen copy that a joiner reads is to be replaced.
var errRetired = errors.New("the frozen copy has grown old and is replaced; what has been verified stays so")

// frozen is a frozen copy of the shared values. It never changes; the hash of a slice is
// computed when the slice is first sent.
type frozen struct {
	slices []tensor.Vector
	hashes []func() [wire.HashSize]byte
	steps  uint64 // behind it
	taken  time.Time

	retired chan struct{} // closed when it is to be replaced
	gone    chan struct{} // closed when it has no more readers
	readers int           // guarded by the freezer's lock
}

func newFrozen(values tensor.Vector, sliceLen int, steps uint64, taken time.Time) *frozen {
	f := &frozen{steps: steps, taken: taken, retired: make(chan struct{}), gone: make(chan struct{}), readers: 1}
	for slice := range slices.Chunk(values, sliceLen) {
		f.slices = append(f.slices, slice)
		f.hashes = append(f.hashes, sync.OnceValue(func() [wire.HashSize]byte { return hashOf(slice) }))
	}
	return f
}

// hashOf is the hash of values as they are sent.
func hashOf(values tensor.Vector) (sum [wire.HashSize]byte) {
	hash, piece := sha256.New(), make([]byte, 0, 4<<10)
	for part := range slices.Chunk(values, cap(piece)/tensor.ValueSize) {
		_, _ = hash.Write(tensor.AppendBytes(piece, part)) // never fails
	}
	hash.Sum(sum[:0])
	return sum
}

// freezer keeps one frozen copy for all joiners, as long as one of them reads it. So there
// is never more than one, however many joiners come.
type freezer struct {
	turn chan struct{} // holds a token while a copy is chosen or made
	last time.Time     // when the last copy was made; for the holder of turn

	mu      sync.Mutex
	current *frozen // nil if nobody reads one
}

func newFreezer() *freezer { return &freezer{turn: make(chan struct{}, 1)} }

// acquire returns a frozen copy with at least so many steps, if the model has as many. The
// caller releases it. If the current copy is too old, its readers are asked to end, and
// acquire waits for that.
func (f *freezer) acquire(ctx context.Context, steps uint64, freeze func() *frozen) (*frozen, error) {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if current := f.share(steps); current != nil {
		return current, nil
	}
	select {
	case <-time.After(time.Until(f.last.Add(frozenLeast))):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case <-f.retire():
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	made := freeze()
	f.last = made.taken
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current = made
	return made, nil
}

// share is the current copy, if it may be given to a further joiner that wants so many
// steps.
func (f *freezer) share(steps uint64) *frozen {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.current
	if c == nil || c.steps < steps || time.Since(c.taken) >= frozenMost {
		return nil
	}
	select {
	case <-c.retired:
		return nil
	default:
	}
	c.readers++
	return c
}

// retire asks the readers of the current copy to end, and returns a channel that is closed
// when they have.
func (f *freezer) retire() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == nil {
		none := make(chan struct{})
		close(none)
		return none
	}
	select {
	case <-f.current.retired:
	default:
		close(f.current.retired)
	}
	return f.current.gone
}

// release gives a copy back; its memory is free when the last reader has done so.
func (f *freezer) release(c *frozen) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.readers--; c.readers == 0 {
		f.current = nil
		close(c.gone)
	}
}
