package sim_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/topology"
)

// course runs a flock that trains over links that lose, break and freeze, and
// returns a digest of all its parameters and how much happened.
func course(t *testing.T, seed uint64) (digest [32]byte, events int) {
	rng := rand.New(rand.NewPCG(seed, 9))
	f := newFlock(t, plan{
		seed: seed, peers: 8, values: 60, sliceLen: 16, codec: "bf16", inbound: 2, deadline: within(200 * time.Millisecond),
		config: sim.Config{
			Task: direct{stepper: newStirrer(seed, 60)}, Link: sim.Link{Delay: time.Millisecond, Bandwidth: 1e6, Loss: 0.05},
			Terms: replica.Terms{Window: 3}, SettleAfter: 20 * time.Millisecond,
			Hooks: sim.Hooks{Opened: slasher(rng, 0.2)},
		},
	})
	for range 10 {
		events += f.world.Run(f.world.Now() + 100*time.Millisecond)
		a, b := rng.IntN(8), rng.IntN(8)
		if a != b {
			f.world.Freeze(a, b)
			f.world.After(150*time.Millisecond, func() { f.world.Thaw(a, b) })
		}
	}
	return f.world.Digest(), events
}

func TestSameSeedGivesTheSameCourseToTheLastBit(t *testing.T) {
	digest, events := course(t, 1)
	again, eventsAgain := course(t, 1)
	if digest != again || events != eventsAgain {
		t.Errorf("seed 1 gave %x after %d events, and then %x after %d", digest, events, again, eventsAgain)
	}
	if other, _ := course(t, 2); other == digest {
		t.Errorf("seeds 1 and 2 both gave %x", digest)
	}
	t.Logf("%d events, %x", events, digest[:8])
}

// TestCutLinkIsLeftAloneAndUsedAgain cuts one peer off from all others and heals
// that later.
func TestCutLinkIsLeftAloneAndUsedAgain(t *testing.T) {
	const peers, lonely = 6, 3
	unreachable := 0
	finished := make([]int, peers)
	f := newFlock(t, plan{
		seed: 71, peers: peers, values: 40, sliceLen: 16,
		config: sim.Config{
			Task: direct{stepper: idle{}}, Link: sim.Link{Delay: time.Millisecond, Bandwidth: 1e6},
			Hooks: sim.Hooks{
				Broke: func(_, _ int, err error) {
					if errors.Is(err, sim.ErrUnreachable) {
						unreachable++
					}
				},
				Finished: func(peer, _ int, _ bool) { finished[peer]++ },
			},
		},
	})
	each := func(do func(a, b int)) {
		for other := range peers {
			if other != lonely {
				do(lonely, other)
			}
		}
	}
	each(f.world.Cut)
	before := f.world.Run(2 * time.Second)
	if finished[lonely] > 0 || unreachable == 0 {
		t.Errorf("cut off, the peer finished %d exchanges and was unreachable %d times", finished[lonely], unreachable)
	}
	if c := f.world.Counts(lonely); c.Steps < 150 {
		t.Errorf("cut off, the peer took %d steps: it waited", c.Steps)
	}
	each(f.world.Heal)
	if f.world.Run(4*time.Second) < before/2 || finished[lonely] == 0 {
		t.Error("healed, the peer finished no exchange")
	}
}

// TestSlowLinkIsSlowForThoseItJoinsOnly gives one peer a slow line to everybody.
func TestSlowLinkIsSlowForThoseItJoinsOnly(t *testing.T) {
	const peers, slow = 8, 2
	f := newFlock(t, plan{
		seed: 81, peers: peers, values: 1000, sliceLen: 100,
		config: sim.Config{Task: direct{stepper: idle{}}, Link: sim.Link{Delay: time.Millisecond, Bandwidth: 1e7}},
	})
	for other := range peers {
		if other == slow {
			continue
		}
		if err := f.world.SetLink(slow, other, sim.Link{Delay: time.Millisecond, Bandwidth: 1e4}); err != nil {
			t.Fatal(err)
		}
	}
	f.world.Run(5 * time.Second)
	for i := range peers {
		c := f.world.Counts(i)
		if c.Steps < 400 {
			t.Errorf("peer %d took %d steps: somebody waited", i, c.Steps)
		}
		if n := c.Initiated + c.Served; i == slow && n > 15 || i != slow && n < 40 {
			t.Errorf("peer %d completed %d exchanges", i, n)
		}
	}
}

func TestConfigurationFaultsAreToldAtOnce(t *testing.T) {
	_, err := sim.New(sim.Config{Link: sim.Link{Delay: -1, Bandwidth: -1, Loss: 1}, Stall: -1})
	if err == nil {
		t.Fatal("an empty world was made")
	}
	for _, want := range []string{"Members", "Task", "Plan", "Rand", "Delay", "Bandwidth", "Loss", "Stall"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing is said of %s: %v", want, err)
		}
	}
}

// TestALinkThatBecomesSlowIsServed: one peer of four has a line on which an exchange takes half
// of its deadline from some moment on. Those given up until its waits have grown do not have it
// wait for the others so long that it comes to nothing.
func TestALinkThatBecomesSlowIsServed(t *testing.T) {
	t.Parallel()
	const peers, least = 4, 8
	slow := slices.Index(roles(t, peers), topology.Passive)
	f := newFlock(t, plan{
		seed: 92, peers: peers, values: 1000, sliceLen: 10, retry: 5 * time.Second, every: 50,
		config: sim.Config{
			Task: direct{stepper: idle{}}, Link: sim.Link{Delay: 200 * time.Microsecond, Bandwidth: 1e7}, Stall: 5 * time.Second,
			Terms: replica.Terms{Window: 4},
		},
	})
	f.world.Run(20 * time.Second)
	before := f.world.Counts(slow)
	for other := range peers {
		if other == slow {
			continue
		}
		if err := f.world.SetLink(slow, other, sim.Link{Delay: time.Millisecond, Bandwidth: 500}); err != nil {
			t.Fatal(err)
		}
	}
	f.world.Run(320 * time.Second)
	after := f.world.Counts(slow)
	t.Logf("five minutes: %d completed, %d failed", after.Served-before.Served, after.Failed-before.Failed)
	if n := after.Served - before.Served; n < least {
		t.Errorf("%d exchanges completed in five minutes, want %d", n, least)
	}
}
