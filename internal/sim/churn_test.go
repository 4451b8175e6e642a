package sim_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/tensor"
)

// fresh makes peer i anew, as a process that is started again, with zeros for a model.
func (f *flock) fresh(p plan, i int) sim.Member {
	f.renew(p, i)
	return f.member(p, i)
}

// renew gives a peer that has gone an empty replica, and a ledger.
func (f *flock) renew(p plan, i int) {
	r, err := replica.New(tensor.NewParams(f.replicas[0].Layout()), replica.Options{SliceLen: p.sliceLen})
	if err != nil {
		f.t.Fatal(err)
	}
	f.replicas[i], f.ledgers[i] = r, replica.NewLedger(r)
}

// TestPeersComeAndGo lets a peer crash, another leave and the first come back, and sees
// that nobody exchanges with who is gone, that the others go on, and that who comes
// back has a neighbour's model.
func TestPeersComeAndGo(t *testing.T) {
	const crashed, left = 4, 5 // both passive: others ask them
	var broke []error
	p := plan{
		seed: 9, peers: 8, values: 200, sliceLen: 50, every: 1,
		config: sim.Config{
			Task: direct{stepper: idle{}}, Link: sim.Link{Delay: time.Millisecond, Bandwidth: 1e6}, Stall: 200 * time.Millisecond,
			News: sim.News{Crash: time.Second, Gossip: 50 * time.Millisecond},
			Hooks: sim.Hooks{Broke: func(_, partner int, err error) {
				if partner == crashed {
					broke = append(broke, err)
				}
			}},
		},
	}
	f := newFlock(t, p)
	f.world.Run(time.Second)
	f.world.Crash(crashed)
	f.world.Leave(left)
	if f.world.Here(crashed) || f.world.Here(left) || !f.world.Here(0) {
		t.Error("the world has lost track of who is here")
	}
	gone := f.world.Counts(crashed)
	f.world.Run(1900 * time.Millisecond)
	stalled := 0
	for _, err := range broke {
		if errors.Is(err, sim.ErrStalled) {
			stalled++
		}
	}
	if stalled == 0 {
		t.Errorf("nobody was kept waiting by a peer whose plug was pulled: %v", broke)
	}
	f.world.Run(2500 * time.Millisecond)
	before, others := len(broke), f.world.Counts(0).Steps
	f.world.Run(4 * time.Second)
	if len(broke) > before {
		t.Errorf("partners still try who is known to be gone: %v", broke[before:])
	}
	if now := f.world.Counts(crashed); now != gone {
		t.Errorf("who is gone went on: %+v, then %+v", gone, now)
	}
	if f.world.Counts(0).Steps-others < 100 {
		t.Error("the others did not go on")
	}
	back := f.fresh(p, crashed)
	if err := f.world.Arrive(crashed, back); err != nil {
		t.Fatal(err)
	}
	if err := f.world.Arrive(0, f.member(p, 0)); err == nil {
		t.Error("a peer that is there could arrive")
	}
	f.world.Run(4100 * time.Millisecond)
	own, other := make(tensor.Vector, p.values), make(tensor.Vector, p.values)
	f.replicas[crashed].Snapshot(own)
	f.replicas[0].Snapshot(other)
	tensor.Sub(own, other)
	if d := tensor.Norm2(own); d > 0.05*tensor.Norm2(other) {
		t.Errorf("who came back is %g away from a model of norm %g: it copied none", d, tensor.Norm2(other))
	}
	f.world.Run(6 * time.Second)
	if c := f.world.Counts(crashed); c.Initiated+c.Served == gone.Initiated+gone.Served || c.Steps <= gone.Steps {
		t.Errorf("who came back takes no part: %+v, before %+v", c, gone)
	}
}

// TestChurnTakesOneCourse runs random churn twice.
func TestChurnTakesOneCourse(t *testing.T) {
	course := func() (digest [32]byte, all sim.Counts) {
		p := plan{
			seed: 4, peers: 12, values: 300, sliceLen: 64, every: 2, codec: "lattice6+4",
			config: sim.Config{
				Task: direct{stepper: idle{}}, Link: sim.Link{Delay: 2 * time.Millisecond, Bandwidth: 2e5, Loss: 0.01}, Stall: 100 * time.Millisecond,
				News: sim.News{Crash: 300 * time.Millisecond, Gossip: 20 * time.Millisecond},
			},
		}
		f := newFlock(t, p)
		rng := rand.New(rand.NewPCG(8, 8))
		for range 60 {
			f.world.Run(f.world.Now() + 50*time.Millisecond)
			switch i := rng.IntN(p.peers); {
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
		f.world.Finish()
		f.world.Run(time.Hour)
		if n := f.world.Pending(); n > 0 {
			t.Errorf("%d things are still to come", n)
		}
		return f.world.Digest(), f.total()
	}
	one, counts := course()
	two, _ := course()
	if one != two {
		t.Error("the same seed took two courses")
	}
	if counts.Initiated == 0 || counts.Failed == 0 {
		t.Errorf("nothing was at stake: %+v", counts)
	}
}

// TestPortIsSharedByAllLinks sends from three peers to one through a port that takes
// a second for a megabyte.
func TestPortIsSharedByAllLinks(t *testing.T) {
	f := newFlock(t, plan{seed: 1, peers: 2, values: 250_000, sliceLen: 1 << 15, config: sim.Config{
		Task: direct{stepper: slow{}}, Port: 1e6, Stall: time.Minute,
	}})
	f.world.Run(1500 * time.Millisecond)
	if n := f.total().Initiated; n > 0 {
		t.Error("a megabyte went through a port of a megabyte a second in less than half a second")
	}
	f.world.Run(4 * time.Second)
	if n := f.total().Initiated; n != 1 {
		t.Errorf("%d exchanges of 2 MB in 3 s through ports of 1 MB/s", n)
	}
}

// slow takes a second for a step, and learns nothing.
type slow struct{}

func (slow) Duration(int, int, int) time.Duration { return time.Second }
func (slow) Step(_, _ int, _, delta []float32)    { clear(delta) }
