package peer_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// slandered is a membership that calls members dead when it is told to.
type slandered struct {
	transport.Membership
	mu      sync.Mutex
	dead    []transport.PeerID
	changed chan struct{}
}

func (s *slandered) Changed() <-chan struct{} { return s.changed }

func (s *slandered) signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *slandered) call(dead ...transport.PeerID) {
	s.mu.Lock()
	s.dead = dead
	s.mu.Unlock()
	s.signal()
}

func (s *slandered) Members() []transport.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(s.Membership.Members(), func(r transport.Record) bool { return slices.Contains(s.dead, r.Peer) })
}

// TestDeadByGossipIsOnlyAHint: a member that is called dead and answers stays a member
// and a partner for as long as it does. Once it freezes, it is dropped and counted.
func TestDeadByGossipIsOnlyAHint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{Link: memnet.Link{Delay: time.Millisecond}})
		var peers [2]*peer.Peer
		var heard *slandered
		for i, name := range []string{"one", "two"} {
			config := peer.Config{Run: "digits", Params: newModel(), Network: inMemory(t, network, name, "digits")}
			shortRun(i, &config)
			config.Training.Work = peer.Work{}
			if i == 0 {
				heard = &slandered{Membership: config.Network.Membership, changed: make(chan struct{}, 1)}
				config.Network.Membership = heard
			} else {
				config.Join = peers[0].JoinAddresses()[:1]
			}
			peers[i] = start(t, config)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-heard.Membership.Changed():
					heard.signal()
				}
			}
		}()
		train := func(steps int) (completed uint64) {
			t.Helper()
			before := peers[0].Stats().Exchanges.Completed()
			for range steps {
				for _, p := range peers {
					if err := step(t, p, idle); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(100 * time.Millisecond)
			}
			return peers[0].Stats().Exchanges.Completed() - before
		}
		train(20)
		heard.call(peers[1].Self())
		if n := train(300); n < 100 {
			t.Errorf("%d exchanges in half a minute with a member that is called dead", n)
		}
		if s := peers[0].Stats(); s.Members != 2 || s.Lost != 0 {
			t.Errorf("%d members, %d lost, want 2 and 0", s.Members, s.Lost)
		}
		network.StallAfter(peers[1].Self(), peers[0].Self(), 0)
		train(100)
		if s := peers[0].Stats(); s.Members != 1 || s.Lost != 1 {
			t.Errorf("%d members, %d lost once it is frozen, want 1 and 1", s.Members, s.Lost)
		}
		network.Release(peers[1].Self(), peers[0].Self())
		heard.call()
		if n := train(300); n == 0 || peers[0].Stats().Members != 2 {
			t.Errorf("%d exchanges and %d members once it is back", n, peers[0].Stats().Members)
		}
	})
}
