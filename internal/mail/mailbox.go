package mail

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/internal/idle"
	"github.com/seed-97356399/murmuration/internal/requests"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Config is what a mailbox needs from its peer.
type Config struct {
	*requests.Requests // Stall bounds the time to open a stream to a partner, and to write to it
	Protocol           transport.Protocol
	Bounds             Bounds
	Rate               Rate
	// Confirmed: Close waits until the other end has read all, and ends its stream; else until all is written.
	Confirmed bool
	// Timeout, if not nil, replaces Stall.
	Timeout func(transport.PeerID) time.Duration
	// Lost is called when messages to or from a partner may be lost, with the reason: a stream has
	// broken, or the partner cannot be reached. It is called on many goroutines, and may Send.
	Lost func(partner transport.PeerID, why error)
}

// Mailbox sends messages of one protocol to partners, and receives theirs. It is safe for concurrent use.
type Mailbox struct {
	Config
	*receiver
	closing, broken context.Context // end when Close begins, and when streams are broken off
	close, breakOff context.CancelFunc
	sending         tasks.Group
	spare           idle.Pool[[]byte] // memory of frames

	mu     sync.Mutex
	queues map[transport.PeerID]*queue // of partners with messages to send
}

// New makes a mailbox.
func New(c Config) *Mailbox {
	m := &Mailbox{Config: c, queues: make(map[transport.PeerID]*queue), spare: newSpare()}
	m.closing, m.close = context.WithCancel(context.Background())
	m.broken, m.breakOff = context.WithCancel(context.Background())
	m.receiver = newReceiver(m.closing, c)
	return m
}

// Send queues a message, and never waits. Messages arrive in order, but those without a topic before
// others: messages with a topic are bulk data, which Forget can drop. Send is a function because methods
// have no type parameters, and a message passed as an interface would be allocated.
func Send[M wire.Message](m *Mailbox, to transport.PeerID, topic string, message M) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing.Err() != nil {
		return transport.ErrClosed
	}
	q := m.queues[to]
	if q == nil {
		q = &queue{bounds: m.Bounds, spare: m.spare, wake: make(chan struct{}, 1)}
		m.queues[to] = q
		s := &sender{Config: m.Config, to: to, queue: q, closing: m.closing, broken: m.broken, retire: m.retire}
		m.sending.Spawn(s.run)
	}
	frame, err := wire.Pack(m.spare.Take(), 0, message)
	if err != nil {
		return fmt.Errorf("sending %v: %w", message.Type(), err)
	}
	return q.put(frame, topic)
}

// retire removes the queue of a partner, unless a message waits in it.
func (m *Mailbox) retire(to transport.PeerID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.queues[to].empty() {
		return false
	}
	delete(m.queues, to)
	return true
}

// Forget drops the waiting messages of a topic.
func (m *Mailbox) Forget(topic string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.queues {
		q.forget(topic)
	}
}

// Close sends what waits, as far as partners take it, until ctx ends, ends the streams in both directions
// and lets no other begin. It waits for all goroutines that send, and is idempotent.
func (m *Mailbox) Close(ctx context.Context) {
	m.mu.Lock()
	m.close()
	m.mu.Unlock()
	stop := context.AfterFunc(ctx, m.breakOff)
	defer stop()
	m.sending.End()
	m.breakOff()
}
