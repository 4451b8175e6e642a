package sumtalks

import (
	"slices"
	"sync"

	"github.com/seed-97356399/murmuration/internal/sums"
	"github.com/seed-97356399/murmuration/internal/wire"
)

const (
	// maxQueued bounds the frames that wait for a partner, maxWaiting their bytes: shares are as many as
	// what this member brings itself, those of one attempt, and words a few, unless the partner takes
	// none. The largest sum has room.
	maxQueued  = 1 << 16
	maxWaiting = wire.NumberSize*sums.MaxLength + 64<<20
	// together is about how many bytes are written at once.
	together = 256 << 10
	// maxSpare bounds the frames whose memory is kept.
	maxSpare = 4
)

// queue is frames that wait to be sent, in order, but words before shares: who cannot say for long where
// it is, since it sends much over a slow link, is taken for one that has gone.
type queue struct {
	mu     sync.Mutex
	frames []waiting
	words  int      // of frames, the first
	bytes  int      // of frames
	spare  [][]byte // frames that have been taken, for the next
	closed bool
	wake   chan struct{} // holds a token if there is something to do
}

// waiting is a frame, and of what sum it is a share, "" if it is a word.
type waiting struct {
	frame []byte
	share string
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// blank is memory for a frame.
func (q *queue) blank() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.spare)
	if n == 0 {
		return nil
	}
	frame := q.spare[n-1]
	q.spare = q.spare[:n-1]
	return frame[:0]
}

// put adds a frame. Where there are too many all are lost: the machine says again what
// matters.
func (q *queue) put(frame []byte, share string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.frames) >= maxQueued || q.bytes+len(frame) > maxWaiting {
		q.frames, q.words, q.bytes = nil, 0, 0
	}
	at := len(q.frames)
	if share == "" {
		at = q.words
		q.words++
	}
	q.frames = slices.Insert(q.frames, at, waiting{frame, share})
	q.bytes += len(frame)
	q.signal()
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default: // a token waits already
	}
}

// forget drops the shares of a sum, whose attempt was given up.
func (q *queue) forget(sum string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.frames = slices.DeleteFunc(q.frames, func(w waiting) bool {
		if w.share == sum {
			q.bytes -= len(w.frame)
		}
		return w.share == sum
	})
}

// take moves frames that are to be written at once into buf, and tells whether the queue is
// closed.
func (q *queue) take(buf []byte) (_ []byte, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for ; n < len(q.frames) && (n == 0 || len(buf)+len(q.frames[n].frame) <= together); n++ {
		frame := q.frames[n].frame
		q.bytes -= len(frame)
		if buf = append(buf, frame...); len(q.spare) < maxSpare {
			q.spare = append(q.spare, frame)
		}
	}
	q.frames, q.words = slices.Delete(q.frames, 0, n), max(q.words-n, 0)
	return buf, q.closed
}

// drop loses what waits.
func (q *queue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.frames, q.words, q.bytes = nil, 0, 0
}

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.frames) == 0
}
