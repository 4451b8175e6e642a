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

// handless is a transport that takes no handler of one protocol.
type handless struct {
	transport.Transport
	protocol transport.Protocol
}

var errHandless = errors.New("no handler")

func (h handless) Handle(protocol transport.Protocol, run string, handler transport.Handler) (func(), error) {
	if protocol == h.protocol {
		return nil, errHandless
	}
	return h.Transport.Handle(protocol, run, handler)
}

// TestAStartThatFailsHalfWayLeavesNothing: no goroutine goes on, which the bubble tells, and no handler stays.
func TestAStartThatFailsHalfWayLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := peer.Config{
			Network:  inMemory(t, memnet.New(memnet.Config{}), "half", peertest.Run),
			Training: peer.Training{Params: newModel()},
		}
		config.Network.Run = peertest.Run
		config.Network.Transport = handless{config.Network.Transport, transport.ProtocolState}
		if p, err := peer.Start(t.Context(), config); !errors.Is(err, errHandless) {
			t.Fatalf("%v, %v", p, err)
		}
	})
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
