package mail

import (
	"errors"
	"testing"

	"github.com/seed-97356399/murmuration/internal/wire"
)

func queueOf(b Bounds) *queue {
	return &queue{bounds: b, spare: newSpare(), wake: make(chan struct{}, 1)}
}

// fill puts messages into a queue, each with what becomes of it.
func fill(t *testing.T, q *queue, all ...struct {
	frame, topic string
	want         error
}) {
	t.Helper()
	for _, m := range all {
		if err := q.put([]byte(m.frame), m.topic); !errors.Is(err, m.want) {
			t.Errorf("%q: %v, want %v", m.frame, err, m.want)
		}
	}
}

type put = struct {
	frame, topic string
	want         error
}

// TestAQueueIsBounded shows that a partner that takes nothing costs a bounded memory.
func TestAQueueIsBounded(t *testing.T) {
	q := queueOf(Bounds{Messages: 3, Bytes: 10, Batch: 100})
	fill(t, q, put{"12345", "", nil}, put{"123456", "x", ErrFull}, put{"6789", "x", nil}, put{"0", "", nil}, put{"", "", ErrFull})
	if all := q.take(nil); string(all) != "1234506789" {
		t.Errorf("%s waited", all)
	}
	q = queueOf(Bounds{Messages: 3, Bytes: 10, Batch: 100, Renew: true})
	fill(t, q, put{"12345", "", nil}, put{"123456", "x", nil}, put{"a", "", nil}, put{"b", "", nil}, put{"c", "x", nil})
	if all := q.take(nil); string(all) != "c" {
		t.Errorf("%s waited", all)
	}
	if !q.empty() {
		t.Error("not empty")
	}
}

// TestWhatWaitsIsCounted shows that bytes are counted right as messages come and go.
func TestWhatWaitsIsCounted(t *testing.T) {
	q := queueOf(Bounds{Messages: 10, Bytes: 10, Batch: 1})
	fill(t, q, put{"1", "y", nil}, put{"12", "x", nil}, put{"3", "x", nil})
	if q.forget("x"); q.bytes != 1 || len(q.messages) != 1 {
		t.Errorf("%d messages of %d bytes are left", len(q.messages), q.bytes)
	}
	if q.take(nil); q.bytes != 0 {
		t.Errorf("%d bytes wait after all were taken", q.bytes)
	}
	fill(t, q, put{"1", "", nil})
	if q.drop(); q.bytes != 0 || q.urgent != 0 || !q.empty() {
		t.Errorf("%d bytes, %d urgent are left", q.bytes, q.urgent)
	}
}

// TestTheUrgentGoesBeforeTheBulk shows that what is of no topic does not wait for what a slow link holds
// up, and that a batch has its bound, and no less than one message.
func TestTheUrgentGoesBeforeTheBulk(t *testing.T) {
	q := queueOf(Bounds{Messages: 10, Bytes: 100, Batch: 4})
	fill(t, q, put{"1", "x", nil}, put{"2", "x", nil}, put{"a", "", nil}, put{"3", "x", nil}, put{"b", "", nil})
	if all := q.take(nil); string(all) != "ab12" {
		t.Errorf("%s", all)
	}
	fill(t, q, put{"45678", "x", nil}, put{"c", "", nil})
	for _, want := range []string{"c3", "45678", ""} {
		if all := q.take(nil); string(all) != want {
			t.Errorf("%s, want %s", all, want)
		}
	}
}

// TestFramesAreUsedAgain shows that the memory of messages that were taken, and of no more than a few, is
// kept.
func TestFramesAreUsedAgain(t *testing.T) {
	q := queueOf(Bounds{Messages: 10, Bytes: 100, Batch: 100})
	for range maxSpare + 2 {
		fill(t, q, put{"1", "", nil})
	}
	q.take(nil)
	for i := range maxSpare + 1 {
		if frame := q.spare.Take(); (frame == nil) != (i == maxSpare) {
			t.Errorf("frame %d: %v", i, frame)
		}
	}
}

// TestAQueueAllocatesNothing shows that messages cost no memory once the queue has that of a few.
func TestAQueueAllocatesNothing(t *testing.T) {
	q := queueOf(Bounds{Messages: maxSpare, Bytes: 1 << 10, Batch: 1 << 10})
	buf := make([]byte, 0, 1<<10)
	allocated := testing.AllocsPerRun(100, func() {
		for range maxSpare {
			frame, err := wire.Pack(q.spare.Take(), 0, wire.Tell{Kind: 1})
			if err != nil {
				t.Fatal(err)
			}
			if err := q.put(frame, ""); err != nil {
				t.Fatal(err)
			}
		}
		buf = q.take(buf[:0])
	})
	if allocated > 0 {
		t.Errorf("%g allocations for %d messages", allocated, maxSpare)
	}
}
