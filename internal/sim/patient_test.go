package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/tensor"
)

// patientFlock is a training on MNIST among liars that are patient: whoever meets one is
// pushed in always the same direction, as far as the bounds of that moment allow.
type patientFlock struct {
	peers, liars int
	epochs       int
	every        int
	dirichlet    float64 // how unlike the parts are, 0 is alike
	codec        string  // raw
}

// withstood is how well the honest do, in percent.
type withstood struct{ mean, worst float64 }

func (o withstood) String() string { return fmt.Sprintf("%.2f %% (worst %.2f)", o.mean, o.worst) }

// lying are those that lie, of both roles in turn.
func (b patientFlock) lying(t *testing.T) (liars []int) {
	rs := roles(t, b.peers)
	order := make([]int, b.peers)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return int(rs[y]) - int(rs[x]) })
	for i := range b.liars {
		if i%2 == 0 {
			liars = append(liars, order[i/2])
		} else {
			liars = append(liars, order[len(order)-1-i/2])
		}
	}
	return liars
}

// halting has the trainer of liars do nothing.
type halting struct {
	*pupils
	honest func(int) bool
}

func (h halting) Step(peer, step int, x, delta []float32) {
	if !h.honest(peer) {
		clear(delta)
		return
	}
	h.pupils.Step(peer, step, x, delta)
}

// withstand trains a flock in which some lie.
func (d *digits) withstand(t *testing.T, b patientFlock) withstood {
	t.Helper()
	parts, err := dividing(dataset.Shard{Alpha: b.dirichlet}, b.peers)
	if err != nil {
		t.Fatal(err)
	}
	of := *d
	of.parts = parts
	liars := b.lying(t)
	honest := func(peer int) bool { return !slices.Contains(liars, peer) }
	training := of.pupils(t, besiegedSeed, b.epochs)
	training.due = training.due * (b.peers - b.liars) / b.peers
	f := d.besiegedFlock(t, b, training, honest)
	for !training.over() {
		f.world.Run(f.world.Now() + pupilStep)
	}
	o := withstood{mean: d.accuracy(f.mean(honest)), worst: 100}
	for i, r := range f.replicas {
		if honest(i) {
			r.Snapshot(f.scratch)
			o.worst = min(o.worst, d.accuracy(f.scratch))
		}
	}
	return o
}

const besiegedSeed = 5

// besiegedFlock is the flock, in whose world liars show whoever they meet its own model,
// far away in their direction. Their own bounds are infinite.
func (d *digits) besiegedFlock(t *testing.T, b patientFlock, training *pupils, honest func(int) bool) *flock {
	t.Helper()
	layout := d.model.Layout()
	f := &flock{t: t, scratch: make(tensor.Vector, layout.Len())}
	codec, err := coding.ByName(cmpOr(b.codec, "raw"))
	if err != nil {
		t.Fatal(err)
	}
	const far = 1000 // of each value: clipped to the bound, it is a push as long as that
	direction := make(tensor.Vector, layout.Len())
	rng := rand.New(rand.NewPCG(besiegedSeed, 9))
	for i := range direction {
		direction[i] = far * float32(rng.NormFloat64())
	}
	lie := func(liar, victim int) {
		if honest(liar) || !honest(victim) {
			return
		}
		f.replicas[victim].Snapshot(f.scratch)
		tensor.Add(f.scratch, direction)
		if err := f.replicas[liar].RestoreShared(f.scratch); err != nil {
			t.Fatal(err)
		}
	}
	config := sim.Config{
		Task: direct{stepper: halting{training, honest}}, Link: sim.Link{Delay: 50 * time.Microsecond, Bandwidth: 1e9},
		Terms: replica.Terms{Window: 4, Plan: coding.Uniform(codec)}, Rand: rand.New(rand.NewPCG(besiegedSeed, 2)),
		Hooks: sim.Hooks{Opened: func(s *sim.Stream) { lie(s.From(), s.To()); lie(s.To(), s.From()) }},
	}
	for i := range b.peers {
		params := tensor.NewParams(layout)
		d.model.Init(besiegedSeed, params.Vector())
		f.add(params, plan{unclipped: !honest(i)}, i)
		machine, err := averaging.NewADPSGD(averaging.Config{
			Self: nameOf(i), Pace: averaging.Pace{Every: b.every}, Rand: rand.New(rand.NewPCG(besiegedSeed, uint64(100+i))),
		})
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

// dividing cuts MNIST, which has been loaded, into parts for so many peers.
func dividing(shard dataset.Shard, peers int) (parts [pupilPeers]*dataset.Set, err error) {
	train := loaded.data.Train
	labels := make([]uint8, train.Len())
	for i := range labels {
		labels[i] = uint8(train.Label(i))
	}
	for i := range parts {
		indices, err := shard.Part(labels, 1, i%peers, peers)
		if err != nil {
			return parts, err
		}
		parts[i] = train.Subset(indices)
	}
	return parts, nil
}

// worstQuantized is how many points three liars of 16 cost the worst of the honest where
// exchanges are quantized. It depends on the start: 3.8 to 9.0 points over seven of them, and
// 2.0 to 4.1 over four where a layer's weights lay input by input, while the mean of all
// costs 1.1 to 3.6 either way.
const worstQuantized = 10

// TestAPatientLiarCostsLittle has liars push everybody they meet in one direction, from
// the first exchange to the last, as far as they are let, while a flock learns MNIST at a
// rate that falls to zero. Nothing of that can be told from one honest exchange.
func TestAPatientLiarCostsLittle(t *testing.T) {
	t.Parallel()
	d := loadDigits(t)
	for _, c := range []struct {
		patientFlock
		most float64 // points of accuracy that it costs the mean of the honest, and the worst of them
	}{
		{patientFlock{peers: 16, liars: 1, every: 1}, 1},
		{patientFlock{peers: 16, liars: 2, every: 1}, 2},
		{patientFlock{peers: 16, liars: 3, every: 1}, 4},
		{patientFlock{peers: 16, liars: 3, every: 4}, 4},
		{patientFlock{peers: 16, liars: 1, every: 4, dirichlet: 0.1}, 1},
		{patientFlock{peers: 16, liars: 3, every: 1, codec: "lattice6+4"}, 4}, // of the mean: see worstQuantized
		{patientFlock{peers: 8, liars: 1, every: 1}, 2},
		{patientFlock{peers: 8, liars: 1, every: 4}, 2},
		{patientFlock{peers: 4, liars: 1, every: 1}, 20}, // half of the exchanges of the two of the other class
		{patientFlock{peers: 4, liars: 1, every: 4}, 18},
	} {
		c.epochs = 2
		with := c.patientFlock
		c.liars = 0
		clean, got := d.withstand(t, c.patientFlock), d.withstand(t, with)
		t.Logf("%d of %d, an exchange every %d steps, Dirichlet %g, %s: %v, of %v", with.liars, c.peers, c.every, c.dirichlet, cmpOr(c.codec, "raw"), got, clean)
		worst := c.most
		if c.codec != "" {
			worst = worstQuantized
		}
		if mean, of := clean.mean-got.mean, clean.worst-got.worst; mean > c.most || of > worst {
			t.Errorf("it costs %.2f points, at most %g, and the worst %.2f, at most %g", mean, c.most, of, worst)
		}
	}
}
