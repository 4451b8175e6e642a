package sim_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/tensor"
)

// racers are pupils whose gradients are averaged: each counts its own updates.
type racers struct {
	*pupils
	updates [pupilPeers]int
}

// Gradient is that of the peer's next batch.
func (r *racers) Gradient(_, peer, _ int, x, grad []float32) (loss float64, samples int, err error) {
	_ = r.samplers[peer].Next(&r.batch) // fails never
	r.model.Gradient(x, &r.batch, grad)
	return 0, pupilBatch, nil
}

// Delta is a step with momentum, at the rate of the peer's own round, until the work is
// done.
func (r *racers) Delta(peer int, x, grad []float32) {
	if r.Progress(peer) >= 1 {
		clear(grad)
		return
	}
	ratesAt(r.Progress(peer)).Delta(grad, r.velocities[peer], grad, x)
	r.updates[peer]++
	r.made = max(r.made, pupilPeers*r.updates[peer])
}

// Rate implements sim.Task: Delta knows it.
func (r *racers) Rate(int, float64) float64 { return 0 }

// Progress is how many of its rounds the peer has made.
func (r *racers) Progress(peer int) float64 {
	return float64(pupilPeers*r.updates[peer]) / float64(r.due)
}

// allReduce trains a flock by synchronous gradient descent. It returns the
// accuracy of its model in percent, and the bytes that a peer has sent.
func (d *digits) allReduce(t *testing.T, seed uint64, epochs int) (accuracy, perPeer float64) {
	t.Helper()
	f := d.synchronous(t, seed, epochs, allReduce(baseline.Config{}))
	return d.accuracy(f.mean(func(int) bool { return true })), float64(f.total().Sent) / pupilPeers
}

// synchronous trains a flock by gradient descent on the mean of all gradients.
func (d *digits) synchronous(t *testing.T, seed uint64, epochs int, make1 machines) *flock {
	t.Helper()
	layout := d.model.Layout()
	training := &racers{pupils: d.pupils(t, seed, epochs)}
	f := &flock{t: t, scratch: make(tensor.Vector, layout.Len())}
	codec, err := coding.ByName("raw")
	if err != nil {
		t.Fatal(err)
	}
	config := sim.Config{
		Task: training, Link: sim.Link{Delay: 50 * time.Microsecond, Bandwidth: 1e9},
		Terms: replica.Terms{Plan: coding.Uniform(codec)}, Rand: rand.New(rand.NewPCG(seed, 2)),
	}
	for i := range pupilPeers {
		params := tensor.NewParams(layout)
		d.model.Init(seed, params.Vector())
		f.add(params, plan{}, i)
		machine, err := make1(nameOf(i), i)
		if err != nil {
			t.Fatal(err)
		}
		config.Members = append(config.Members, sim.Member{ID: nameOf(i), Machine: machine, Replica: f.replicas[i], Ledger: f.ledgers[i], Optimizer: descending{training, i}})
	}
	if f.world, err = sim.New(config); err != nil {
		t.Fatal(err)
	}
	for !training.over() {
		f.world.Run(f.world.Now() + pupilStep)
	}
	f.comeToRest()
	if all := f.total(); all.Failed > 0 {
		t.Errorf("transfers broke off: %+v", all)
	}
	return f
}

// TestServerIsAllReduce compares the model of a server that waits for all its workers
// with gradient descent on the mean of all gradients.
func TestServerIsAllReduce(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("left out by -short: trains for some seconds")
	}
	d := loadDigits(t)
	want, _ := d.allReduceByFormula(t, 1, 1)
	f := d.synchronous(t, 1, 1, served(func() (baseline.Gate, error) { return baseline.BSP{}, nil }))
	got := d.accuracy(f.mean(func(int) bool { return true }))
	t.Logf("formula %.2f %%, server %.2f %%; %.1f MB in all", want, got, float64(f.total().Sent)/1e6)
	if math.Abs(got-want) > 0.2 {
		t.Errorf("the server reaches %.2f %%, the formula %.2f %%", got, want)
	}
}

// TestNeighboursInLockStepLearn averages models with both neighbours after each step.
func TestNeighboursInLockStepLearn(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("left out by -short: trains for some seconds")
	}
	d := loadDigits(t)
	want, _ := d.allReduceByFormula(t, 1, 1)
	f := d.synchronous(t, 1, 1, dpsgd)
	apart := f.consensus()
	got := d.accuracy(f.mean(func(int) bool { return true }))
	t.Logf("formula %.2f %%, neighbours %.2f %%, models %.3f apart; %.1f MB a peer", want, got, apart, float64(f.total().Sent)/pupilPeers/1e6)
	if got < want-1 {
		t.Errorf("neighbours in lock-step reach %.2f %%, the formula %.2f %%", got, want)
	}
}

// TestAllReduceIsGradientDescent compares with gradient descent on the mean of all gradients, and
// with the bytes that a sum needs. It is not the same to the last digit: those who find
// a leader take its parameters first, and lose a gradient.
func TestAllReduceIsGradientDescent(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("left out by -short: trains for some seconds")
	}
	d := loadDigits(t)
	want, least := d.allReduceByFormula(t, 1, 1)
	got, sent := d.allReduce(t, 1, 1)
	t.Logf("formula %.2f %%, %.2f MB a peer; AllReduce %.2f %%, %.2f MB", want, least/1e6, got, sent/1e6)
	if math.Abs(got-want) > 0.2 {
		t.Errorf("AllReduce reaches %.2f %%, the formula %.2f %%", got, want)
	}
	if sent < least || sent > 1.03*least {
		t.Errorf("a peer sends %.0f bytes, the formula %.0f", sent, least)
	}
}
