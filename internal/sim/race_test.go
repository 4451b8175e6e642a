package sim_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// race is a run in which only time counts: gradients are zeros.
type race struct {
	steady
	peers  int
	speeds []float64 // samples a second of each peer; the last one's for those beyond
	batch  int       // samples
	link   sim.Link
	port   float64    // bytes a second of each peer, 0 for no bound
	jitter *rand.Rand // or nil
	steps  int        // of all peers together
	sizes  []int      // of the last batches
}

// raceValues is the size of the models.
const raceValues = 2000

func (r *race) speed(peer int) float64 { return r.speeds[min(peer, len(r.speeds)-1)] }

func (r *race) Duration(peer, _, samples int) time.Duration {
	if samples > 0 {
		r.sizes[peer] = samples
	}
	d := float64(r.sizes[peer]) / r.speed(peer)
	if r.jitter != nil {
		d *= 0.9 + 0.2*r.jitter.Float64()
	}
	return time.Duration(d * float64(time.Second))
}

func (r *race) Gradient(_, peer, _ int, _, _ []float32) (loss float64, samples int, err error) {
	return 0, r.sizes[peer], nil
}

// machines makes a machine for each peer.
type machines func(self topology.PeerID, i int) (averaging.Machine, error)

func (r *race) flock(t testing.TB, make1 machines) *flock {
	t.Helper()
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{raceValues}})
	if err != nil {
		t.Fatal(err)
	}
	codec, err := coding.ByName("raw")
	if err != nil {
		t.Fatal(err)
	}
	r.sizes = make([]int, r.peers)
	for i := range r.sizes {
		r.sizes[i] = r.batch
	}
	f := &flock{t: t, scratch: make(tensor.Vector, raceValues)}
	config := sim.Config{
		Task: r, Link: r.link, Port: r.port, Stall: time.Hour,
		Terms: replica.Terms{Plan: coding.Uniform(codec), Window: 4}, Rand: rand.New(rand.NewPCG(1, 2)),
	}
	for i := range r.peers {
		f.add(tensor.NewParams(layout), plan{}, i)
		machine, err := make1(nameOf(i), i)
		if err != nil {
			t.Fatal(err)
		}
		config.Members = append(config.Members, sim.Member{ID: nameOf(i), Machine: machine, Replica: f.replicas[i], Ledger: f.ledgers[i], Optimizer: asIs{}})
	}
	if f.world, err = sim.New(config); err != nil {
		t.Fatal(err)
	}
	return f
}

// time is how long the steps take.
func (r *race) time(t testing.TB, make1 machines) time.Duration {
	t.Helper()
	f := r.flock(t, make1)
	for f.total().Steps < r.steps {
		f.world.Run(f.world.Now() + time.Millisecond)
		if f.world.Now() > time.Hour {
			t.Fatalf("%+v in an hour", f.total())
		}
	}
	return f.world.Now()
}

// adpsgd exchanges after every so many steps.
func adpsgd(every int) machines {
	return func(self topology.PeerID, i int) (averaging.Machine, error) {
		return averaging.NewADPSGD(averaging.Config{
			Self: self, Pace: averaging.Pace{Every: every}, Rand: rand.New(rand.NewPCG(7, uint64(i))),
		})
	}
}

func allReduce(config baseline.Config) machines {
	return func(self topology.PeerID, _ int) (averaging.Machine, error) {
		config.Self = self
		return baseline.NewAllReduce(config)
	}
}

func dpsgd(self topology.PeerID, _ int) (averaging.Machine, error) {
	return baseline.NewDPSGD(baseline.Config{Self: self})
}

// oneSlow has one peer that is slower than the others by a factor, which take 10 ms for
// a step.
func oneSlow(factor float64) race {
	return race{
		peers: 16, batch: 32, speeds: []float64{3200 / factor, 3200}, steps: 3200,
		link: sim.Link{Delay: 50 * time.Microsecond, Bandwidth: 1e8},
	}
}

// TestSlowWorker: a flock hardly notices one that is a hundred times slower, a ring
// waits for it.
func TestSlowWorker(t *testing.T) {
	t.Parallel()
	took := func(factor float64, m machines) float64 {
		r := oneSlow(factor)
		if factor > 1 {
			r.steps /= 4
		}
		return r.time(t, m).Seconds() / float64(r.steps)
	}
	ours, ring, neighbours := took(1, adpsgd(1)), took(1, allReduce(baseline.Config{})), took(1, dpsgd)
	t.Logf("no slow peer: adpsgd %.3f ms a step of the flock, allreduce %.3f ms, dpsgd %.3f ms", 1e3*ours, 1e3*ring, 1e3*neighbours)
	for _, factor := range []float64{2, 10, 100} {
		a, b := took(factor, adpsgd(1))/ours, took(factor, allReduce(baseline.Config{}))/ring
		c := took(factor, dpsgd) / neighbours
		t.Logf("one peer slower by %g: adpsgd takes %.2f times as long, allreduce %.1f, dpsgd %.1f", factor, a, b, c)
		if a > 1.10 || factor == 100 && b < 60 {
			t.Errorf("slower by %g: adpsgd %.2f, at most 1.10; allreduce %.1f, at least 60", factor, a, b)
		}
	}
}

// TestEqualPeersAreNotSlower: where the model takes a quarter of a step to send, a flock
// is no slower than a ring.
func TestEqualPeersAreNotSlower(t *testing.T) {
	t.Parallel()
	r := oneSlow(1)
	r.link.Bandwidth = 4 * raceValues / 0.0025
	r.jitter = rand.New(rand.NewPCG(5, 5))
	ours := r.time(t, adpsgd(1))
	ring := r.time(t, allReduce(baseline.Config{}))
	t.Logf("%d steps: adpsgd %s, allreduce %s", r.steps, ours, ring)
	if ours > ring {
		t.Errorf("adpsgd takes %s, allreduce %s", ours, ring)
	}
}

// TestBatchesBySpeed: with batches by speed a round takes about as long as if nobody
// waited for anybody; with equal ones it takes twice that.
func TestBatchesBySpeed(t *testing.T) {
	took := func(batch int) float64 {
		r := race{
			peers: 4, batch: 64, speeds: []float64{800, 800, 1600, 3200}, steps: 4 * 100,
			link: sim.Link{Delay: 50 * time.Microsecond, Bandwidth: 1e8}, jitter: rand.New(rand.NewPCG(3, 3)),
		}
		f := r.flock(t, allReduce(baseline.Config{Batch: batch}))
		for f.total().Steps < r.steps { // settle in
			f.world.Run(f.world.Now() + time.Millisecond)
		}
		began, steps := f.world.Now(), f.total().Steps
		f.world.Run(began + 5*time.Second)
		t.Logf("batches %v", r.sizes)
		return 4 * 5 / float64(f.total().Steps-steps)
	}
	const ideal = 4 * 64 / 6400.0
	equal, balanced := took(0), took(64)
	t.Logf("a round of 256 samples: %.1f ms by speed, %.1f ms in equal parts, %.1f ms if nobody waited", 1e3*balanced, 1e3*equal, 1e3*ideal)
	if math.Abs(balanced/ideal-1) > 0.1 || equal/ideal < 1.8 {
		t.Errorf("by speed %.3f of the least time, at most 1.1; in equal parts %.2f, about 2", balanced/ideal, equal/ideal)
	}
}
