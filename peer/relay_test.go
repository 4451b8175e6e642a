package peer_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// TestMembersMeetAndExchangeThroughTheirRelay: of a run with a key, those that nobody can dial are joined
// through the one that can be, by others that know nothing else of the run but the key. Two that say that
// they cannot be dialled are active, and do not exchange with each other; with the third they do, though all
// that they say to it goes through the relay.
func TestMembersMeetAndExchangeThroughTheirRelay(t *testing.T) {
	t.Parallel()
	type exchange struct {
		of   int
		with transport.PeerID
	}
	done := make(chan exchange, 1<<10)
	var all []*peer.Peer
	begin := func(reach peer.Reach, network peer.Network, join ...string) *peer.Peer {
		network.Admission, network.Reach = peer.Admission{RunKey: runKey}, reach
		i := len(all)
		p := start(t, peer.Config{Run: "digits", Params: newModel(), Join: join, Network: network, Training: peer.Training{
			Exchange: peer.Exchange{Pace: averaging.Pace{Every: 1}},
			Hooks: peer.Hooks{Exchanged: func(e peer.Exchanged) {
				if e.Err == nil {
					done <- exchange{i, e.Partner}
				}
			}},
		}})
		all = append(all, p)
		waitMembers(t, p, len(all))
		return p
	}
	relay := begin(peer.FindReach, peer.Network{Listen: []string{"127.0.0.1:0"}, Relay: p2pnet.Relay{Serve: true}})
	behind := peer.Network{Listen: []string{}, Relay: p2pnet.Relay{Via: relay.JoinAddresses()}}
	first := begin(peer.Unreachable, behind, relay.JoinAddresses()...)
	second := begin(peer.Unreachable, behind, first.JoinAddresses()...)
	third := begin(peer.FindReach, behind, second.JoinAddresses()...)
	for _, p := range all {
		waitMembers(t, p, len(all))
	}
	for _, of := range []*peer.Peer{first, second} {
		soon(t, "the relay sees that they are active and cannot be dialled", func() bool {
			m := seen(t, relay, of)
			return m.Unreachable && m.Role == topology.Active
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	var training sync.WaitGroup
	defer training.Wait()
	defer stop()
	for i, p := range all {
		training.Go(func() {
			for ctx.Err() == nil {
				_ = p.Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) { return towards(i, x, grad) })
				time.Sleep(5 * time.Millisecond) // a gradient takes its time
			}
		})
	}
	for timeout := time.After(controlPatience); ; {
		select {
		case x := <-done:
			of := all[x.of]
			if of == first && x.with == second.Self() || of == second && x.with == first.Self() {
				t.Error("two that are active have exchanged")
			}
			if of != relay && x.with == third.Self() {
				return
			}
		case <-timeout:
			t.Fatal("no exchange between two that nobody can dial")
		}
	}
}
