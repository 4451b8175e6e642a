package p2pnet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// Topic implements seam.Topic on gossipsub.
type Topic struct {
	transport *Transport
	name      string
	handler   seam.TopicHandler
	router    *pubsub.PubSub
	topic     *pubsub.Topic
	relay     pubsub.RelayCancelFunc
	gate      gate
	finish    func() error
}

var (
	_ seam.Topic       = (*Topic)(nil)
	_ seam.Broadcaster = (*Transport)(nil)
)

// Topic implements seam.Broadcaster. The name begins with "murmuration/1/". Its
// messages come from peers that this process is connected to: it dials nobody.
func (t *Transport) Topic(name string, takesPart func(seam.PeerID) bool, handler seam.TopicHandler) (seam.Topic, error) {
	if !strings.HasPrefix(name, topicPrefix) || len(name) > seam.MaxTopicName {
		return nil, fmt.Errorf("p2pnet: topic %q: want %s and a name, at most %d bytes", name, topicPrefix, seam.MaxTopicName)
	}
	if !t.gate.enter() {
		return nil, fmt.Errorf("p2pnet: topic %q: %w", name, seam.ErrClosed)
	}
	defer t.gate.leave()
	router, err := t.startGossip()
	if err != nil {
		return nil, fmt.Errorf("p2pnet: topic %q: %w", name, err)
	}
	topic := &Topic{transport: t, name: name, handler: handler, router: router}
	topic.finish = sync.OnceValue(topic.close)
	// The validator is also what delivers: a subscription of gossipsub drops what
	// comes while its reader is slow. It runs on gossipsub's own few workers, whose
	// queue is bounded, so a flood costs no more goroutines.
	if err := router.RegisterTopicValidator(name, topic.judge, pubsub.WithValidatorInline(true)); err != nil {
		return nil, fmt.Errorf("p2pnet: topic %q: %w", name, err)
	}
	t.gossip.hearers.set(name, takesPart)
	if topic.topic, err = router.Join(name); err == nil {
		// To relay is to take part without a subscription.
		topic.relay, err = topic.topic.Relay()
	}
	if err != nil {
		t.gossip.hearers.set(name, nil)
		return nil, fmt.Errorf("p2pnet: topic %q: %w", name, errors.Join(err, router.UnregisterTopicValidator(name)))
	}
	return topic, nil
}

// judge is gossipsub's validator.
func (t *Topic) judge(_ context.Context, from peer.ID, message *pubsub.Message) pubsub.ValidationResult {
	if from == t.transport.id {
		return pubsub.ValidationAccept
	}
	if !t.gate.enter() {
		return pubsub.ValidationIgnore
	}
	defer t.gate.leave()
	switch t.handler(seam.PeerID(from.String()), message.GetData()) {
	case seam.Forward:
		return pubsub.ValidationAccept
	case seam.Refuse:
		return pubsub.ValidationReject
	}
	return pubsub.ValidationIgnore
}

// Publish implements seam.Topic.
func (t *Topic) Publish(message []byte) error {
	if len(message) > seam.MaxMessage { // gossipsub would lose it without a word
		return fmt.Errorf("p2pnet: publishing %d bytes: %w: at most %d", len(message), seam.ErrTooLarge, seam.MaxMessage)
	}
	if !t.gate.enter() {
		return fmt.Errorf("p2pnet: publishing on topic %q: %w", t.name, seam.ErrClosed)
	}
	defer t.gate.leave()
	if t.transport.ending.Err() != nil {
		return fmt.Errorf("p2pnet: publishing on topic %q: %w", t.name, seam.ErrClosed)
	}
	if err := t.topic.Publish(t.transport.ending, message); err != nil {
		return fmt.Errorf("p2pnet: publishing on topic %q: %w", t.name, err)
	}
	return nil
}

// Neighbours implements seam.Topic.
func (t *Topic) Neighbours() (n int) {
	for _, id := range t.topic.ListPeers() {
		if t.transport.gossip.hearers.has(id, t.name) {
			n++
		}
	}
	return n
}

// Close implements seam.Topic.
func (t *Topic) Close() error { return t.finish() }

func (t *Topic) close() error {
	t.gate.shut()
	t.gate.wait()
	t.relay()
	err := errors.Join(t.topic.Close(), t.router.UnregisterTopicValidator(t.name))
	t.transport.gossip.hearers.set(t.name, nil)
	if t.transport.ending.Err() != nil {
		return nil // gossipsub ended with the transport, and says so
	}
	if err != nil {
		return fmt.Errorf("p2pnet: leaving topic %q: %w", t.name, err)
	}
	return nil
}
