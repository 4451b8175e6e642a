package peer_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// unserving is a transport that lets nobody serve control messages, and counts the topics
// that are taken part in.
type unserving struct {
	transport.Transport
	topics *atomic.Int64
}

func (u unserving) Handle(protocol transport.Protocol, run string, handler transport.Handler) (func(), error) {
	if protocol == transport.ProtocolControl {
		return nil, errors.New("no room for another handler")
	}
	return u.Transport.Handle(protocol, run, handler)
}

func (u unserving) Topic(name string, takesPart func(transport.PeerID) bool, handler transport.TopicHandler) (transport.Topic, error) {
	topic, err := u.Transport.Topic(name, takesPart, handler)
	if err == nil {
		u.topics.Add(1)
	}
	return leftTopic{topic, u.topics}, err
}

type leftTopic struct {
	transport.Topic
	topics *atomic.Int64
}

func (t leftTopic) Close() error {
	t.topics.Add(-1)
	return t.Topic.Close()
}

// TestAPeerThatDoesNotStartLeavesTheTopic: a transport that the peer was lent is as it was.
func TestAPeerThatDoesNotStartLeavesTheTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var topics atomic.Int64
		place := inMemory(t, memnet.New(memnet.Config{}), "host", "digits")
		place.Transport = unserving{place.Transport, &topics}
		place.Control = control.Config{Operator: "operator"}
		if _, err := peer.Start(t.Context(), peer.Config{Run: "digits", Params: newModel(), Network: place}); err == nil {
			t.Fatal("it has started")
		}
		if n := topics.Load(); n != 0 {
			t.Errorf("it still takes part in %d topics", n)
		}
	})
}
