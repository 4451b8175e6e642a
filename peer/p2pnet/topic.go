package p2pnet

import (
	"context"
	"errors"
	"fmt"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// Topic implements transport.Topic on gossipsub.
type Topic struct {
	gossip  *gossip
	name    string
	handler transport.TopicHandler
	topic   *pubsub.Topic
	relay   pubsub.RelayCancelFunc
	gate    gate
	finish  func() error
}

var _ transport.Topic = (*Topic)(nil)

// enter counts the caller in until leave, unless the topic or its transport is closed.
func (t *Topic) enter() bool {
	if !t.gossip.gate.enter() {
		return false
	}
	if !t.gate.enter() {
		t.gossip.gate.leave()
		return false
	}
	return true
}

func (t *Topic) leave() {
	t.gate.leave()
	t.gossip.gate.leave()
}

// judge is the validator that gossipsub calls for each message.
func (t *Topic) judge(_ context.Context, from peer.ID, message *pubsub.Message) pubsub.ValidationResult {
	if from == t.gossip.id {
		return pubsub.ValidationAccept
	}
	if !t.enter() {
		return pubsub.ValidationIgnore
	}
	defer t.leave()
	switch t.handler(transport.PeerID(from.String()), message.GetData()) {
	case transport.Forward:
		return pubsub.ValidationAccept
	case transport.Refuse:
		return pubsub.ValidationReject
	}
	return pubsub.ValidationIgnore
}

// Publish implements transport.Topic.
func (t *Topic) Publish(message []byte) error {
	if len(message) > transport.MaxMessage { // gossipsub would drop it silently
		return fmt.Errorf("p2pnet: publishing %d bytes: %w: at most %d", len(message), transport.ErrTooLarge, transport.MaxMessage)
	}
	if !t.enter() {
		return fmt.Errorf("p2pnet: publishing on topic %q: %w", t.name, transport.ErrClosed)
	}
	defer t.leave()
	if err := t.topic.Publish(t.gossip.ending, message); err != nil {
		return fmt.Errorf("p2pnet: publishing on topic %q: %w", t.name, err)
	}
	return nil
}

// Neighbours implements transport.Topic.
func (t *Topic) Neighbours() (n int) {
	for _, id := range t.topic.ListPeers() {
		if t.gossip.subscribers.has(id, t.name) {
			n++
		}
	}
	return n
}

// Close implements transport.Topic.
func (t *Topic) Close() error { return t.finish() }

func (t *Topic) close() error {
	t.gate.shut()
	t.gate.wait()
	t.relay()
	err := t.topic.Close()
	t.gossip.subscribers.set(t.name, nil) // must precede the release of the name
	err = errors.Join(err, t.gossip.router.UnregisterTopicValidator(t.name))
	if t.gossip.ending.Err() != nil {
		return nil // gossipsub ended with the transport; the error says only that
	}
	if err != nil {
		return fmt.Errorf("p2pnet: leaving topic %q: %w", t.name, err)
	}
	return nil
}
