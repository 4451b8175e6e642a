package peer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
)

// TestAPeerLeftAloneGoesBackToItsAddresses: the only other member dies, and one that
// knows nobody starts at its address some time later.
func TestAPeerLeftAloneGoesBackToItsAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{Link: memnet.Link{Delay: time.Millisecond}})
		seed := start(t, peer.Config{Run: "digits", Params: newModel(), Network: inMemory(t, network, "seed", "digits")})
		left := start(t, peer.Config{Run: "digits", Params: newModel(), Network: inMemory(t, network, "left", "digits"), Join: []string{"mem:seed"}})
		flock := []*peer.Peer{seed, left}
		for _, p := range flock {
			if err := p.WaitMembers(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
		}
		network.Crash(seed.Self())
		go seed.Close()
		time.Sleep(time.Minute)
		if n := left.Stats().Members; n != 1 {
			t.Fatalf("%d members after the other has died", n)
		}
		again := start(t, peer.Config{Run: "digits", Params: newModel(), Network: inMemory(t, network, "seed", "digits")})
		mends(t, "they meet", 15*time.Second, func() bool { return left.Stats().Members == 2 && again.Stats().Members == 2 })
	})
}

// TestPartitionsOfAnyLengthHeal: shorter than gossip needs to see them, about as long
// as it remembers the dead, and longer.
func TestPartitionsOfAnyLengthHeal(t *testing.T) {
	t.Parallel()
	for _, lasts := range []time.Duration{2 * time.Second, 7 * time.Second, 20 * time.Second, 46500 * time.Millisecond, 10*time.Minute + 6500*time.Millisecond} {
		t.Run(lasts.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const peers = 6
				flock := peertest.Start(t, peertest.Config{
					Peers: peers, Params: newModel, Swim: true, Link: memnet.Link{Delay: time.Millisecond},
					Configure: func(_ int, c *peer.Config) { c.Training.Exchange.Pace.Every = 1; c.Training.Optimizer = &optim.SGD{} },
				})
				ids := flock.IDs()
				flock.TrainSteps(t.Context(), 3, atPace(time.Second, towards))
				flock.Network.Partition(ids[:peers/2], ids[peers/2:])
				time.Sleep(lasts)
				flock.Network.HealAll()
				healed := time.Now()
				time.Sleep(time.Second) // what was under way arrives, be it old news
				mends(t, "whole", 30*time.Second-time.Since(healed), func() bool {
					for _, p := range flock.Peers {
						if p.Stats().Members != peers {
							return false
						}
					}
					return true
				})
				flock.TrainSteps(t.Context(), 10, atPace(time.Second, towards))
				for i, p := range flock.Peers {
					if s := p.Stats(); s.Members != peers || s.Exchanges.Lost > 0 {
						t.Errorf("peer %d: %d members, %d slices lost", i, s.Members, s.Exchanges.Lost)
					}
				}
			})
		})
	}
}
