package sim_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/topology"
)

// within gives every peer the same deadline.
func within(d time.Duration) func(int) time.Duration {
	return func(int) time.Duration { return d }
}

// TestPeersThatStallMidFrameLoseNothing lets streams stand still for longer than
// any deadline, and what was kept back arrive when nobody wants it any more. Peers
// serve two exchanges at once.
func TestPeersThatStallMidFrameLoseNothing(t *testing.T) {
	t.Parallel()
	for _, codec := range allCodecs {
		t.Run(codec, func(t *testing.T) { stalls(t, codec) })
	}
}

func stalls(t *testing.T, codec string) {
	const values = 60
	rng := rand.New(rand.NewPCG(41, 0))
	training := newStirrer(42, values)
	begun, aborted, settled := 0, 0, 0
	var f *flock
	f = newFlock(t, plan{
		seed: 43, peers: 6, values: values, sliceLen: 8, codec: codec, every: 2, inbound: 2,
		deadline: func(peer int) time.Duration { return time.Duration(60+20*peer) * time.Millisecond },
		config: sim.Config{
			Task: direct{stepper: training}, Link: sim.Link{Delay: 300 * time.Microsecond, Bandwidth: 2e6},
			Terms: replica.Terms{Window: 4}, SettleAfter: 20 * time.Millisecond, Stall: 300 * time.Millisecond,
			Hooks: sim.Hooks{
				Opened: func(s *sim.Stream) {
					if rng.IntN(3) > 0 {
						return
					}
					begun++
					writer := s.From()
					if rng.IntN(2) == 0 {
						writer = s.To()
					}
					s.StallAfter(writer, rng.Int64N(slashed))
					f.world.After(time.Duration(rng.IntN(400))*time.Millisecond, func() { s.Resume(writer) })
				},
				Broke: func(_, _ int, err error) {
					switch {
					case errors.Is(err, session.ErrAborted), errors.Is(err, sim.ErrStalled):
						aborted++
					case errors.Is(err, replica.ErrSettled):
						settled++
					}
				},
			},
		},
	})
	want := f.sum()
	f.world.Run(20 * time.Second)
	f.comeToRest()
	for i := range want {
		want[i] += training.added[i]
	}
	moved := drift(want, f.sum())
	t.Logf("%d stalls, %d given up, %d too late; the sum is off by %.2g; %+v", begun, aborted, settled, moved, f.total())
	if !(moved <= maxDrift) || f.lost() > 0 {
		t.Errorf("the sum is off by %g of itself, at most %g, with %d slices given up", moved, maxDrift, f.lost())
	}
	if all := f.total(); aborted < 100 || all.Applied < 100 || all.Dropped < 100 {
		t.Errorf("%d exchanges were given up: too few to prove anything: %+v", aborted, all)
	}
}

// TestLateDifferenceOfSettledExchangeIsRefused has the passive peer give an
// exchange up and ask for its outcome while its last answers are still on their
// way: they come when it has been told that they were not applied.
func TestLateDifferenceOfSettledExchangeIsRefused(t *testing.T) {
	var first *sim.Stream
	var refusals int
	f := newFlock(t, plan{
		seed: 51, peers: 2, values: 60, sliceLen: 8, every: 5,
		deadline: func(peer int) time.Duration { // the passive one loses patience first
			if roles(t, 2)[peer] == topology.Passive {
				return 100 * time.Millisecond
			}
			return 10 * time.Second
		},
		config: sim.Config{
			Task: direct{stepper: idle{}}, Link: sim.Link{Delay: time.Millisecond, Bandwidth: 1e6},
			Terms: replica.Terms{Window: 4}, SettleAfter: 50 * time.Millisecond, Stall: 10 * time.Second,
			Hooks: sim.Hooks{
				Opened: func(s *sim.Stream) {
					if first == nil {
						first = s
						s.StallAfter(s.To(), 200)
					}
				},
				Broke: func(_, _ int, err error) {
					if errors.Is(err, replica.ErrSettled) {
						refusals++
					}
				},
			},
		},
	})
	before := f.sum()
	f.world.Run(time.Second)
	if first == nil {
		t.Fatal("no exchange began")
	}
	passive := first.To()
	if c := f.world.Counts(passive); c.InDoubt == 0 || c.Dropped == 0 {
		t.Fatalf("nothing was in doubt and found not to have been applied: %+v", c)
	}
	first.Resume(passive)
	f.world.Run(2 * time.Second)
	if refusals != 1 {
		t.Errorf("%d times a difference was refused because it came too late, want once", refusals)
	}
	f.comeToRest()
	if moved := drift(before, f.sum()); moved > maxDrift {
		t.Errorf("the sum moved by %g of itself", moved)
	}
}
