package sim_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/sim"
)

// TestCrowdSharesWhatItNeeds lets some of many peers, who step at moments of their own, go and
// come back. All who are there know one overlay, whoever made room for conversations and
// gradients, others use it, and the course is that of a world that does not fork.
func TestCrowdSharesWhatItNeeds(t *testing.T) {
	const peers = 600
	course := func(workers int) (digest [32]byte) {
		p := plan{
			seed: 3, peers: peers, values: 64, sliceLen: 32, every: 1,
			config: sim.Config{
				Task: direct{stepper: uneven{rand.New(rand.NewPCG(5, 5))}}, Link: sim.Link{Delay: 100 * time.Microsecond},
				News: sim.News{Gossip: 20 * time.Millisecond, Crash: 40 * time.Millisecond},
			},
		}
		f := newFlock(t, p)
		if workers > 0 {
			f.world.Fork(workers)
		}
		rng := rand.New(rand.NewPCG(8, 8))
		for range 30 {
			f.world.Run(f.world.Now() + 20*time.Millisecond)
			switch i := rng.IntN(peers / 100); {
			case !f.world.Here(i):
				if err := f.world.Arrive(i, f.fresh(p, i)); err != nil {
					t.Fatal(err)
				}
			case rng.IntN(2) == 0:
				f.world.Crash(i)
			default:
				f.world.Leave(i)
			}
		}
		f.world.Run(f.world.Now() + 200*time.Millisecond)
		if all := f.total(); all.Initiated < 10*peers {
			t.Errorf("%d exchanges of %d peers: nothing was at stake", all.Initiated, peers)
		}
		exchanges, served, gradients, overlays := f.world.Made()
		if overlays != 1 {
			t.Errorf("the peers know %d overlays", overlays)
		}
		if most := peers / 4; exchanges > most || served > most {
			t.Errorf("room for %d exchanges and %d at their other ends, of %d peers: want at most %d", exchanges, served, peers, most)
		}
		if most := 256; gradients > most+peers/50 {
			t.Errorf("room for %d gradients, of which about %d are needed at once", gradients, most)
		}
		return f.world.Digest()
	}
	if course(0) != course(2) {
		t.Error("a world that forks takes another course")
	}
}

// uneven takes 8 to 12 ms for a step, and learns nothing.
type uneven struct{ rng *rand.Rand }

func (u uneven) Duration(int, int, int) time.Duration {
	return 8*time.Millisecond + time.Duration(u.rng.IntN(int(4*time.Millisecond)))
}
func (uneven) Step(_, _ int, _, delta []float32) { clear(delta) }
