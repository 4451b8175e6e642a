package mail

import (
	"errors"
	"slices"
	"sync"

	"github.com/seed-97356399/murmuration/internal/idle"
)

// Bounds limit the messages that wait for one partner.
type Bounds struct {
	Messages, Bytes int
	// Batch is about how many bytes are written at once, at least one message.
	Batch int
	// Renew: if there is no room, all waiting messages are dropped instead of the new one.
	Renew bool
}

// ErrFull: the partner does not take the messages before this one, which is lost.
var ErrFull = errors.New("too many messages wait for the partner")

// maxSpare bounds the frames whose memory is kept.
const maxSpare = 4

func newSpare() idle.Pool[[]byte] { return idle.NewPool(maxSpare, func() []byte { return nil }) }

// queue holds the messages that wait to be sent, in order, but those without a topic first. Otherwise a member
// that sends bulk data over a slow link could not report its state for long, and would be taken for lost.
type queue struct {
	bounds Bounds
	spare  idle.Pool[[]byte] // memory of frames
	wake   chan struct{}     // holds a token if a message has come

	mu       sync.Mutex
	messages []message
	urgent   int // number of messages at the front without a topic
	bytes    int // of messages
}

// message is a frame and its topic.
type message struct {
	frame []byte
	topic string
}

// put adds a message, if there is room.
func (q *queue) put(frame []byte, topic string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.messages) >= q.bounds.Messages || q.bytes+len(frame) > q.bounds.Bytes {
		if !q.bounds.Renew {
			return ErrFull
		}
		q.drop()
	}
	at := len(q.messages)
	if topic == "" {
		at = q.urgent
		q.urgent++
	}
	q.messages = slices.Insert(q.messages, at, message{frame, topic})
	q.bytes += len(frame)
	select {
	case q.wake <- struct{}{}:
	default: // a token waits already
	}
	return nil
}

// forget drops the messages of a topic.
func (q *queue) forget(topic string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.messages = slices.DeleteFunc(q.messages, func(m message) bool {
		if m.topic == topic {
			q.bytes -= len(m.frame)
		}
		return m.topic == topic
	})
}

// take moves the messages that are to be written at once into buf.
func (q *queue) take(buf []byte) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for ; n < len(q.messages) && (n == 0 || len(buf)+len(q.messages[n].frame) <= q.bounds.Batch); n++ {
		frame := q.messages[n].frame
		q.bytes -= len(frame)
		buf = append(buf, frame...)
		q.spare.Put(frame)
	}
	q.messages, q.urgent = slices.Delete(q.messages, 0, n), max(q.urgent-n, 0)
	return buf
}

// drop drops all waiting messages. The caller holds the lock.
func (q *queue) drop() { q.messages, q.urgent, q.bytes = nil, 0, 0 }

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.messages) == 0
}
