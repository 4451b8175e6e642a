package replica

import (
	"fmt"
	"sync/atomic"

	"github.com/seed-97356399/murmuration/internal/coding"
)

// retries are the parts that a lane must send again. One goroutine pushes, another peeks
// and pops. A window of entries is enough: each replaces a frame that has been answered,
// and is sent before any new part.
type retries struct {
	parts          []inFlight
	pushed, popped atomic.Int32
}

func (q *retries) begin(window int) {
	q.parts = ring(q.parts, window)
	q.pushed.Store(0)
	q.popped.Store(0)
}

func (q *retries) empty() bool { return q.pushed.Load() == q.popped.Load() }

func (q *retries) push(p inFlight) {
	n := q.pushed.Load()
	q.parts[int(n)%len(q.parts)] = p
	q.pushed.Store(n + 1)
}

// peek copies the next part. It reports false if there is none.
func (q *retries) peek(into *inFlight) bool {
	if q.empty() {
		return false
	}
	*into = q.parts[int(q.popped.Load())%len(q.parts)]
	return true
}

func (q *retries) pop() { q.popped.Add(1) }

// widthOf is the width of an attempt.
func widthOf(attempt int) coding.Width {
	return [attempts]coding.Width{coding.Normal, coding.Wide, coding.Halves}[attempt]
}

// splitFailed splits the set of failed blocks from the code of a difference, if the codec
// has blocks. The set must be part of the blocks sent, and empty after the last attempt.
func splitFailed(codec coding.Codec, p *part, length int, code []byte) (failed coding.Set, rest []byte, err error) {
	if codec.Lattice == (coding.Lattice{}) {
		return nil, code, nil
	}
	failed, rest, err = splitSet(length, code)
	if err != nil {
		return nil, nil, err
	}
	for i := range failed {
		if p.size > 0 && failed[i]&^p.blocks[i] != 0 {
			return nil, nil, fmt.Errorf("blocks failed that were not sent: %w", ErrBlocks)
		}
	}
	if p.attempt == attempts-1 && failed.Count() > 0 {
		return nil, nil, fmt.Errorf("%d blocks failed that came as they are: %w", failed.Count(), ErrBlocks)
	}
	return failed, rest, nil
}

// splitSet splits a set of the blocks of a slice from a payload.
func splitSet(length int, payload []byte) (set coding.Set, rest []byte, err error) {
	size := coding.SetSize(length)
	if len(payload) < size {
		return nil, nil, fmt.Errorf("%d bytes for a set of %d: %w", len(payload), size, coding.ErrSize)
	}
	if set = payload[:size:size]; !set.Fits(length) {
		return nil, nil, fmt.Errorf("blocks beyond the slice: %w", ErrBlocks)
	}
	return set, payload[size:], nil
}
