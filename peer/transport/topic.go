package transport

import "errors"

// Bounds of a topic.
const (
	// MaxMessage is the most bytes in a message on a topic.
	MaxMessage = 4096
	// MaxTopicName is the most bytes in a topic's name.
	MaxTopicName = 128
)

var (
	// ErrTooLarge: a message has more than MaxMessage bytes, and was not sent.
	ErrTooLarge = errors.New("larger than a message on a topic may be")
	// ErrNoTopics: the transport has no topics.
	ErrNoTopics = errors.New("this transport has no topics")
)

// Verdict is a receiver's decision about a message on a topic.
type Verdict uint8

const (
	// Forward: the message is good and goes on to others.
	Forward Verdict = iota
	// Drop: the message is not forwarded, but its sender is not at fault: it is old, or
	// cannot be judged.
	Drop
	// Refuse: no peer that follows the rules would have passed the message on.
	Refuse
)

// TopicHandler judges a message, and uses it, before it is forwarded to others. from is the
// peer that forwarded it, which need not be its author. It is called on goroutines of the
// transport, several at once; it should return soon and must not keep message. It is not
// called for what the local process publishes.
type TopicHandler func(from PeerID, message []byte) Verdict

// Topic spreads small messages among all processes that take part in it, by way of
// neighbours. Delivery is likely, not certain: a process that must know has to ask. The
// same bytes, published again within minutes, may be taken for a repetition and dropped.
// Safe for concurrent use.
type Topic interface {
	// Publish hands a message to the neighbours. It fails with ErrTooLarge rather than lose
	// the message silently; nil does not mean that anybody has received it.
	Publish(message []byte) error
	// Neighbours is the number of other processes, connected to this one, that are
	// known to take part.
	Neighbours() int
	// Close leaves the topic and returns once no handler of it is still running, so
	// a handler must not call it. It is idempotent.
	Close() error
}

// Topics opens topics, on which small messages spread. A transport that has none fails with
// ErrNoTopics; package peer then spreads control messages by asking one member after the
// other, which is slower.
type Topics interface {
	// Topic takes part in a topic. A peer for which takesPart returns false neither
	// receives messages on the topic, nor are its messages taken. The result may change at
	// any time; takesPart must return at once. Nil admits everybody. A second handler for
	// one topic is an error.
	Topic(name string, takesPart func(PeerID) bool, handler TopicHandler) (Topic, error)
}
