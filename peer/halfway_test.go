package peer_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// handless is a transport that takes no handler of one protocol, and counts the topics that are taken part in.
type handless struct {
	transport.Transport
	protocol transport.Protocol
	topics   *int
}

var errHandless = errors.New("no handler")

func (h handless) Handle(protocol transport.Protocol, run string, handler transport.Handler) (func(), error) {
	if protocol == h.protocol {
		return nil, errHandless
	}
	return h.Transport.Handle(protocol, run, handler)
}

func (h handless) Topic(name string, takesPart func(transport.PeerID) bool, handler transport.TopicHandler) (transport.Topic, error) {
	*h.topics++
	topic, err := h.Transport.Topic(name, takesPart, handler)
	return leftTopic{topic, h.topics}, err
}

type leftTopic struct {
	transport.Topic
	topics *int
}

func (t leftTopic) Close() error {
	*t.topics--
	return t.Topic.Close()
}

// TestAStartThatFailsHalfWayLeavesNothing: no goroutine goes on, which the bubble tells, and no handler stays, nor a topic
// of a transport that the peer was lent.
func TestAStartThatFailsHalfWayLeavesNothing(t *testing.T) {
	for _, protocol := range []transport.Protocol{transport.ProtocolState, transport.ProtocolControl, transport.ProtocolExchange, transport.ProtocolHello} {
		synctest.Test(t, func(t *testing.T) {
			config := peer.Config{
				Network:  inMemory(t, memnet.New(memnet.Config{}), "half", peertest.Run),
				Training: peer.Training{Params: newModel()},
			}
			topics, lent := 0, config.Network.Transport
			config.Network.Run, config.Network.Control.Operator = peertest.Run, "operator"
			config.Network.Transport = handless{lent, protocol, &topics}
			if p, err := peer.Start(t.Context(), config); !errors.Is(err, errHandless) {
				t.Fatalf("without %s: %v, %v", protocol, p, err)
			}
			if topics != 0 {
				t.Errorf("without %s it still takes part in %d topics", protocol, topics)
			}
			for _, left := range []transport.Protocol{transport.ProtocolHello, transport.ProtocolExchange, transport.ProtocolState} {
				if stop, err := lent.Handle(left, peertest.Run, nil); err != nil {
					t.Errorf("without %s: %v", protocol, err)
				} else {
					stop()
				}
			}
		})
	}
}

// TestANodeClosesWhileItBeginsToTrain: whichever comes first, nothing is left.
func TestANodeClosesWhileItBeginsToTrain(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			network := inMemory(t, memnet.New(memnet.Config{}), "node", peertest.Run)
			network.Run = peertest.Run
			n, err := peer.Join(t.Context(), network)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			var both sync.WaitGroup
			both.Go(func() {
				if trainer, err := n.Train(t.Context(), peer.Training{Params: newModel()}); err == nil {
					_ = trainer.Close()
				} else if !errors.Is(err, peer.ErrClosed) {
					t.Error(err)
				}
			})
			both.Go(func() {
				if err := n.Close(); err != nil {
					t.Error(err)
				}
			})
			both.Wait()
		})
	}
}
