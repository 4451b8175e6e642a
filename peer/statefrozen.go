package peer

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// For how long a frozen copy is given to further newcomers: one older than frozenMost
// is frozen anew for the next, and so is one that is older in steps than the next asks
// for, but not before it is frozenLeast old: a stranger that asks for the newest state
// again and again, or leaves each time it has it, must not keep this peer copying.
const (
	frozenLeast = time.Second
	frozenMost  = time.Minute
)

// errRetired: the frozen copy that a newcomer is being given is to be replaced.
var errRetired = errors.New("the frozen copy has grown old and is replaced; what has been verified stays so")

// snapshot is a frozen copy of what is exchanged. Its values never change; the hash of
// a slice is taken when the slice is first given.
type snapshot struct {
	values   tensor.Vector
	sliceLen int
	steps    uint64 // behind it
	taken    time.Time

	mu     sync.Mutex // guards what follows
	hashes []byte     // of the slices, one after the other
	hashed []bool

	retired chan struct{} // closed when it is to be replaced
	readers int           // guarded by the freezer's lock
}

// freeze makes a snapshot of the model. It takes as much memory as the model has.
func (p *Peer) freeze() *snapshot {
	s := &snapshot{
		sliceLen: p.replica.SliceLen(), steps: p.age(), taken: time.Now(),
		retired: make(chan struct{}),
	}
	full := make(tensor.Vector, p.replica.Len())
	p.replica.Consistent(full)
	s.values = p.replica.CompactShared(full)
	s.hashes, s.hashed = make([]byte, s.slices()*wire.HashSize), make([]bool, s.slices())
	return s
}

// slices is their number.
func (s *snapshot) slices() int { return slicesOf(len(s.values), s.sliceLen) }

// slice is the i-th.
func (s *snapshot) slice(i int) tensor.Vector {
	return s.values[i*s.sliceLen : min((i+1)*s.sliceLen, len(s.values))]
}

// appendHash appends the hash of the i-th slice to dst. scratch keeps room for a slice.
func (s *snapshot) appendHash(dst []byte, i int, scratch *[]byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	hash := s.hashes[i*wire.HashSize : (i+1)*wire.HashSize]
	if !s.hashed[i] {
		*scratch = tensor.AppendBytes((*scratch)[:0], s.slice(i))
		sum := sha256.Sum256(*scratch)
		copy(hash, sum[:])
		s.hashed[i] = true
	}
	return append(dst, hash...)
}

// slicesOf is the number of slices that so many values make.
func slicesOf(values, sliceLen int) int { return (values + sliceLen - 1) / sliceLen }

// good tells whether a snapshot may be given to a further newcomer, which wants so
// many steps behind it.
func (s *snapshot) good(steps uint64, now time.Time) bool {
	return now.Sub(s.taken) < frozenMost && s.steps >= steps
}

// freezer keeps one snapshot for all newcomers, as long as one of them reads it, so
// that however many come there is never more than one. The zero value is ready.
type freezer struct {
	mu      sync.Mutex
	current *snapshot
	making  bool
	frozen  time.Time     // when a snapshot was last taken
	changed chan struct{} // closed when the above have changed, if anybody waits
}

// acquire returns a snapshot with at least so many steps behind it, if the model has
// as many. The caller releases it. If the one there is is too old, its readers are
// told to go, and acquire waits for that.
func (f *freezer) acquire(ctx context.Context, steps uint64, freeze func() *snapshot) (*snapshot, error) {
	for {
		s, wait, ripe := f.try(steps)
		if s != nil {
			return s, nil
		}
		if wait == nil {
			s = freeze()
			f.mu.Lock()
			s.readers, f.current, f.making, f.frozen = 1, s, false, s.taken
			f.tell()
			f.mu.Unlock()
			return s, nil
		}
		select {
		case <-wait:
		case <-ripe:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// try returns the current snapshot if it is good, or what to wait for before the
// next try. If it returns neither, the caller is to make a snapshot.
func (f *freezer) try(steps uint64) (_ *snapshot, wait <-chan struct{}, ripe <-chan time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	switch {
	case f.making:
	case f.current == nil && now.Sub(f.frozen) >= frozenLeast:
		f.making = true
		return nil, nil, nil
	case f.current == nil:
		ripe = time.After(frozenLeast - now.Sub(f.frozen))
	case f.current.good(steps, now):
		f.current.readers++
		return f.current, nil, nil
	case now.Sub(f.current.taken) < frozenLeast:
		ripe = time.After(frozenLeast - now.Sub(f.current.taken))
	default:
		f.current.retire()
	}
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return nil, f.changed, ripe
}

// retire tells the readers to go. The freezer's lock is held.
func (s *snapshot) retire() {
	select {
	case <-s.retired:
	default:
		close(s.retired)
	}
}

// release gives a snapshot back; its memory is free when the last reader has done so.
func (f *freezer) release(s *snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.readers--; s.readers == 0 {
		f.current = nil
		f.tell()
	}
}

// tell wakes those who wait. The lock is held.
func (f *freezer) tell() {
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}
