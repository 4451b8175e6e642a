package memnet

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// MaxWaiting bounds the messages on their way to one member of a topic; more are
	// lost.
	MaxWaiting = 256
	// maxSeen bounds the messages that a member recognizes when they come again.
	maxSeen = 4096
)

// Topic implements transport.Topic: everybody who takes part and is not across a cut
// link is a neighbour. A message takes the delay of the link; bandwidth and loss do
// not touch it. Safe for concurrent use.
type Topic struct {
	transport *Transport
	name      string
	takesPart func(transport.PeerID) bool
	handler   transport.TopicHandler
	inbox     chan letter
	done      chan struct{}
	finished  chan struct{} // closed when its goroutine has ended
	leave     func()

	seen *lru.Cache[[sha256.Size]byte, struct{}]
}

// letter is a message on its way.
type letter struct {
	from    transport.PeerID
	message string
	at      time.Duration // of the network's time, when it arrives
}

var _ transport.Topic = (*Topic)(nil)

// Topic implements transport.Topics.
func (t *Transport) Topic(name string, takesPart func(transport.PeerID) bool, handler transport.TopicHandler) (transport.Topic, error) {
	if takesPart == nil {
		takesPart = func(transport.PeerID) bool { return true }
	}
	topic := &Topic{
		transport: t, name: name, takesPart: takesPart, handler: handler,
		inbox: make(chan letter, MaxWaiting), done: make(chan struct{}), finished: make(chan struct{}),
	}
	topic.seen, _ = lru.New[[sha256.Size]byte, struct{}](maxSeen) // fails for sizes below one only
	topic.leave = sync.OnceFunc(func() {
		t.net.topics.remove(topic)
		close(topic.done)
	})
	if t.isStopped() {
		return nil, fmt.Errorf("memnet: topic %q: %w", name, transport.ErrClosed)
	}
	if name == "" || len(name) > transport.MaxTopicName {
		return nil, fmt.Errorf("memnet: topic of %d bytes: want 1 to %d", len(name), transport.MaxTopicName)
	}
	if !t.net.topics.add(topic) {
		return nil, fmt.Errorf("memnet: %s takes part in topic %q already", t.name, name)
	}
	go topic.run()
	return topic, nil
}

// Publish implements transport.Topic.
func (t *Topic) Publish(message []byte) error {
	if len(message) > transport.MaxMessage {
		return fmt.Errorf("memnet: publishing %d bytes: %w: at most %d", len(message), transport.ErrTooLarge, transport.MaxMessage)
	}
	select {
	case <-t.done:
		return fmt.Errorf("memnet: publishing on topic %q: %w", t.name, transport.ErrClosed)
	default:
	}
	if text := string(message); t.first(text) {
		t.pass(text, "")
	}
	return nil
}

// Neighbours implements transport.Topic.
func (t *Topic) Neighbours() int { return len(t.others()) }

// Close implements transport.Topic.
func (t *Topic) Close() error {
	t.leave()
	<-t.finished
	return nil
}

func (t *Topic) run() {
	defer close(t.finished)
	defer t.leave()
	for {
		var l letter
		select {
		case <-t.done:
			return
		case <-t.transport.done:
			return
		case l = <-t.inbox:
		}
		select {
		case <-t.done:
			return
		case <-t.transport.done:
			return
		case <-time.After(l.at - t.transport.net.now()):
		}
		if t.transport.net.cable(t.transport.Self(), l.from).isCut() || !t.takesPart(l.from) {
			continue
		}
		if t.first(l.message) && t.handler(l.from, []byte(l.message)) == transport.Forward {
			t.pass(l.message, l.from)
		}
	}
}

func (t *Topic) pass(message string, from transport.PeerID) {
	self := t.transport.Self()
	for _, other := range t.others() {
		if other.transport.Self() == from || other.has(message) {
			continue
		}
		c := t.transport.net.cable(self, other.transport.Self())
		c.mu.Lock()
		delay := max(c.link.Delay, 0)
		c.mu.Unlock()
		select {
		case other.inbox <- letter{from: self, message: message, at: t.transport.net.now() + delay}:
		default: // it is flooded
		}
	}
}

func (t *Topic) others() []*Topic {
	var reached []*Topic
	self := t.transport.Self()
	for _, other := range t.transport.net.topics.members(t.name) {
		to := other.transport.Self()
		if other != t && !other.transport.isStopped() && !t.transport.net.cable(self, to).isCut() && t.takesPart(to) {
			reached = append(reached, other)
		}
	}
	return reached
}

// first notes a message. It reports false if it has come before.
func (t *Topic) first(message string) bool {
	known, _ := t.seen.ContainsOrAdd(sha256.Sum256([]byte(message)), struct{}{})
	return !known
}

func (t *Topic) has(message string) bool {
	return t.seen.Contains(sha256.Sum256([]byte(message)))
}

// seat is a peer's place in a topic.
type seat struct {
	topic string
	peer  transport.PeerID
}

// topics are who takes part in what, on a network.
type topics struct {
	mu    sync.Mutex
	table map[seat]*Topic
}

func (s *topics) add(t *Topic) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := seat{t.name, t.transport.Self()}
	if old := s.table[at]; old != nil && old.transport == t.transport {
		return false
	}
	s.table[at] = t
	return true
}

func (s *topics) remove(t *Topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := (seat{t.name, t.transport.Self()}); s.table[at] == t {
		delete(s.table, at)
	}
}

func (s *topics) members(name string) (members []*Topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, t := range s.table {
		if at.topic == name {
			members = append(members, t)
		}
	}
	return members
}
