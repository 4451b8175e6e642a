package peer_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
)

// allocationsOfRound are how often package peer, and what it calls but for the transport,
// allocates in a round of two peers with slices of a length.
func allocationsOfRound(t *testing.T, sliceLen int, machine func(baseline.Config) (averaging.Machine, error)) float64 {
	const warmUp, rounds = 30, 200
	network := memnet.New(memnet.Config{})
	var peers []*peer.Peer
	for i, name := range []string{"0", "1"} {
		config := peer.Config{
			Run:     "digits",
			Params:  newModel(),
			Network: inMemory(t, network, name, "digits"),
			Training: peer.Training{Exchange: peer.Exchange{SliceLen: sliceLen, Machine: func(c averaging.Config) (averaging.Machine, error) {
				return machine(baseline.Config{Self: c.Self})
			}}},
		}
		if i > 0 {
			config.Join = []string{"mem:0"}
		}
		peers = append(peers, start(t, config))
	}
	for _, p := range peers {
		for p.Stats().Members != 2 {
			time.Sleep(time.Millisecond)
		}
	}
	run := func(n int) {
		var trainers sync.WaitGroup
		for _, p := range peers {
			trainers.Go(func() {
				for range n {
					if err := step(t, p, idle); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		trainers.Wait()
	}
	run(warmUp)
	before, moved := allocations(), peers[0].Stats().Exchanges.Completed()
	run(rounds)
	each := 0.0
	for name, n := range allocations() {
		each += float64(n-before[name]) / rounds
	}
	t.Logf("slices of %d: %.1f allocations a round, %.2f transfers at one peer", sliceLen, each, float64(peers[0].Stats().Exchanges.Completed()-moved)/rounds)
	return each
}

// TestTransferAllocations: what a transfer allocates does not depend on how many slices
// it moves, for the moves of a ring and for those of a server.
func TestTransferAllocations(t *testing.T) {
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	runtime.MemProfileRate = 1 // each allocation
	for _, r := range []rival{rivals()[0], rivals()[2]} {
		t.Run(r.name, func(t *testing.T) {
			few, many := allocationsOfRound(t, 2048, r.machine), allocationsOfRound(t, 64, r.machine)
			// There are 31 slices more in each transfer, some four a round: one allocation a slice would be 124 at
			// least. What the background allocates meanwhile, by the clock, is in these figures too.
			if many > few+31 {
				t.Errorf("a round allocates %.1f times with slices of 2048 values, %.1f times with those of 64", few, many)
			}
		})
	}
}
