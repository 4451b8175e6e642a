package sim_test

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/sim"
)

// abreast trains nothing, all at one pace.
type abreast struct{ idle }

func (abreast) Duration(int, int, int) time.Duration { return 10 * time.Millisecond }

// TestABurstMakesModelsAlike: where all peers go abreast, one burst of log2 n exchanges makes their models the mean; as
// many exchanges one by one leave some of the variance.
func TestABurstMakesModelsAlike(t *testing.T) {
	const every = 4
	for _, c := range []struct{ peers, burst int }{{4, 2}, {8, 3}, {16, 4}, {32, 5}} {
		left := func(burst int) float64 {
			f := newFlock(t, plan{
				seed: 4, peers: c.peers, values: 20, every: every, burst: burst, unclipped: true,
				config: sim.Config{Task: direct{stepper: abreast{}}, Link: sim.Link{Delay: 50 * time.Microsecond, Bandwidth: 1e9}},
			})
			before, start := f.sum(), f.variance()
			f.world.Run((every*time.Duration(c.burst) + 1) * 10 * time.Millisecond)
			if n := f.total().Initiated; burst > 0 && n != c.burst*c.peers/2 {
				t.Errorf("%d peers: %d exchanges, want %d", c.peers, n, c.burst*c.peers/2)
			}
			if d := drift(before, f.sum()); d > maxDrift {
				t.Errorf("the sum has moved by %g of itself", d)
			}
			return f.variance() / start
		}
		together, apart := left(c.burst), left(0)
		t.Logf("%d peers: %.2g of the variance is left after a burst of %d, %.2g without", c.peers, together, c.burst, apart)
		if together > 1e-9 || c.peers >= 16 && apart < 1e-3 {
			t.Errorf("%d peers: a burst leaves %g of the variance, single exchanges %g", c.peers, together, apart)
		}
	}
}
