package sim_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
)

// maxDrift is how far the sum over all peers may move, relative to itself.
const maxDrift = 1e-6

// slashed is the bytes of one direction of an exchange in these tests, about: cuts
// are drawn up to here, so that most fall into the exchange and some behind it.
const slashed = 1200

// slasher cuts a share of the streams, each at a byte of either direction.
func slasher(rng *rand.Rand, share float64) func(*sim.Stream) {
	return func(s *sim.Stream) {
		if rng.Float64() >= share {
			return
		}
		writer := s.From()
		if rng.IntN(2) == 0 {
			writer = s.To()
		}
		s.CutAfter(writer, rng.Int64N(slashed))
	}
}

// slashedFlock runs exchanges until so many have been completed, cutting streams
// all the time, and then lets the flock repair what it can. It returns by how much
// the sum of all models has moved.
func slashedFlock(t *testing.T, codec string, exchanges int, forgetful bool) (*flock, float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(11, 0))
	var f *flock
	broke := func(peer, _ int, _ error) {
		if forgetful { // what is in doubt is dropped at once
			f.ledgers[peer].Expire(f.world.Now() + replica.DefaultKeep)
		}
	}
	f = newFlock(t, plan{
		seed: 5, peers: 8, values: 60, sliceLen: 8, codec: codec,
		config: sim.Config{
			Task: direct{stepper: idle{}}, Link: sim.Link{Delay: 500 * time.Microsecond, Bandwidth: 2e6},
			Terms: replica.Terms{Window: 4}, SettleAfter: 20 * time.Millisecond,
			Hooks: sim.Hooks{Opened: slasher(rng, 0.3), Broke: broke},
		},
	})
	before := f.sum()
	for f.total().Initiated < exchanges {
		f.world.Run(f.world.Now() + time.Second)
	}
	f.comeToRest()
	return f, drift(before, f.sum())
}

// comeToRest ends the training and lets everything be settled.
func (f *flock) comeToRest() {
	f.t.Helper()
	f.world.Finish()
	f.world.Run(f.world.Now() + time.Hour)
	if n := f.world.Pending(); n > 0 {
		f.t.Errorf("%d things are still to happen an hour after the end", n)
	}
	for i, l := range f.ledgers {
		if n, _ := l.InDoubt(); n > 0 {
			f.t.Errorf("peer %d still has %d slices in doubt", i, n)
		}
	}
}

// lost is what all ledgers have given up.
func (f *flock) lost() (slices uint64) {
	for _, l := range f.ledgers {
		slices += l.Lost().Slices
	}
	return slices
}

// allCodecs are one of each kind, and of lattices those that peers choose among.
var allCodecs = []string{"raw", "bf16", "fp16", "int8", "lattice8+4", "lattice6+4", "lattice4+1"}

// TestSumIsConservedOverTenThousandExchangesThatAreCut, by all codecs together, also does without the
// ledger, to show that it sees what it should.
func TestSumIsConservedOverTenThousandExchangesThatAreCut(t *testing.T) {
	t.Parallel()
	const exchanges = 2_000 // by each codec
	for _, codec := range allCodecs {
		t.Run(codec, func(t *testing.T) {
			f, moved := slashedFlock(t, codec, exchanges, false)
			all := f.total()
			t.Logf("the sum moved by %.2g of itself; %+v", moved, all)
			if moved > maxDrift {
				t.Errorf("the sum moved by %g of itself, at most %g", moved, maxDrift)
			}
			if all.Failed < exchanges/10 || all.Applied < exchanges/100 || all.Dropped < exchanges/100 {
				t.Errorf("too little was broken to prove anything: %+v", all)
			}
			if n := f.lost(); n > 0 {
				t.Errorf("%d slices were given up", n)
			}
		})
		t.Run(codec+" without ledger", func(t *testing.T) {
			f, moved := slashedFlock(t, codec, exchanges/2, true)
			t.Logf("the sum moved by %.2g of itself, %d slices given up", moved, f.lost())
			if moved <= 100*maxDrift {
				t.Errorf("the sum moved by %g of itself without a ledger: cuts that do no harm prove nothing", moved)
			}
			if f.lost() == 0 {
				t.Error("nothing was given up without a ledger")
			}
		})
	}
}
