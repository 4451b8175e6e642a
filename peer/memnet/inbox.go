package memnet

import "time"

// segment is a run of bytes that arrives at one time.
type segment struct {
	at   time.Duration // never while held back
	size int
}

// inbox holds what one end has written and the other has not read yet: a ring
// of bytes, cut into segments with their arrival times, which never decrease.
// It grows to the window and then allocates nothing.
type inbox struct {
	window int
	ring   []byte
	head   int // index of the first byte
	size   int

	segments []segment // the live ones start at first
	first    int

	ended bool          // the writer has ended its side
	endAt time.Duration // when that arrives
	torn  bool          // the end is no EOF: the stream broke there
}

func (b *inbox) space() int { return b.window - b.size }

func (b *inbox) put(p []byte, at, now time.Duration) {
	b.grow(b.size + len(p))
	tail := (b.head + b.size) % len(b.ring)
	n := copy(b.ring[tail:], p)
	copy(b.ring, p[n:])
	b.size += len(p)
	if n := len(b.segments); n > b.first {
		last := &b.segments[n-1]
		if last.at == at || (last.at <= now && at <= now) {
			last.size += len(p)
			return
		}
	}
	if len(b.segments) == cap(b.segments) && b.first > len(b.segments)/2 {
		b.segments = b.segments[:copy(b.segments, b.segments[b.first:])]
		b.first = 0
	}
	b.segments = append(b.segments, segment{at: at, size: len(p)})
}

// grow makes room for a number of bytes, at least doubling.
func (b *inbox) grow(need int) {
	if need <= len(b.ring) {
		return
	}
	const smallest = 1 << 10
	ring := make([]byte, min(b.window, max(smallest, need, 2*len(b.ring))))
	n := copy(ring, b.ring[b.head:min(b.head+b.size, len(b.ring))])
	copy(ring[n:], b.ring[:b.size-n])
	b.ring, b.head = ring, 0
}

func (b *inbox) take(p []byte, now time.Duration) int {
	taken := 0
	for taken < len(p) && b.first < len(b.segments) && b.segments[b.first].at <= now {
		s := &b.segments[b.first]
		n := min(s.size, len(p)-taken, len(b.ring)-b.head)
		copy(p[taken:], b.ring[b.head:b.head+n])
		b.head = (b.head + n) % len(b.ring)
		b.size -= n
		taken += n
		if s.size -= n; s.size == 0 {
			b.first++
		}
	}
	if b.first == len(b.segments) {
		b.segments, b.first = b.segments[:0], 0
	}
	return taken
}

// next is when the next bytes, or the end, arrive; never if nothing is under
// way.
func (b *inbox) next() time.Duration {
	switch {
	case b.first < len(b.segments):
		return b.segments[b.first].at
	case b.ended:
		return b.endAt
	}
	return never
}

func (b *inbox) atEnd(now time.Duration) bool {
	return b.size == 0 && b.ended && b.endAt <= now
}

func (b *inbox) drop() {
	b.ring, b.head, b.size = nil, 0, 0
	b.segments, b.first = nil, 0
}

func (b *inbox) hold(now time.Duration) {
	for i := b.first; i < len(b.segments); i++ {
		if b.segments[i].at > now {
			b.segments[i].at = never
		}
	}
	if b.ended && b.endAt > now {
		b.endAt = never
	}
}

// release gives what was held back new arrival times, in order, from send. It
// reports false if send does.
func (b *inbox) release(send func(size int) (time.Duration, bool)) bool {
	held := b.segments[b.first:]
	for len(held) > 0 && held[0].at != never {
		held = held[1:]
	}
	sizes := 0
	for _, s := range held {
		sizes += s.size
	}
	b.segments = b.segments[:len(b.segments)-len(held)]
	for ; sizes > 0; sizes -= min(sizes, SegmentSize) {
		at, ok := send(min(sizes, SegmentSize))
		if !ok {
			return false
		}
		b.segments = append(b.segments, segment{at: at, size: min(sizes, SegmentSize)})
	}
	if b.ended && b.endAt == never {
		b.endAt, _ = send(0)
	}
	return true
}
