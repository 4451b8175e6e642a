package sim_test

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/tensor"
)

// How digits are learned in these tests: 16 peers with a part of MNIST each, a
// perceptron, heavy-ball momentum that stays at home, and a rate that falls to zero
// along a cosine.
const (
	pupilPeers    = 16
	pupilBatch    = 16
	pupilRate     = 0.02
	pupilMomentum = 0.9
	pupilStep     = 10 * time.Millisecond // of virtual time
)

// pupilHidden is how many hidden units the perceptron has. Half as many as in the tables
// show the same in half the time.
func pupilHidden() int {
	if *tables {
		return 64
	}
	return 32
}

// digits are MNIST in the parts of the peers.
type digits struct {
	parts [pupilPeers]*dataset.Set
	test  *dataset.Set
	epoch int // pictures of all parts together
	model nets.Model
}

// loadDigits reads MNIST, and skips the test where it is absent.
func loadDigits(t *testing.T) *digits {
	t.Helper()
	return loadCut(t, dataset.Shard{}, 1)
}

// loaded is MNIST once a test has read it, and what several tests make of it. Tests only read
// it too.
var loaded struct {
	once   sync.Once
	data   *dataset.Data
	err    error
	cuts   sync.Map // dividing
	sieges sync.Map // withstand
}

func loadMNIST(dir string) (*dataset.Data, error) {
	loaded.once.Do(func() {
		loaded.data, loaded.err = dataset.Load(context.Background(), dataset.Config{Name: "mnist", Dir: dir})
	})
	return loaded.data, loaded.err
}

// loadCut reads MNIST in parts that are cut so.
func loadCut(t *testing.T, shard dataset.Shard, seed uint64) *digits {
	t.Helper()
	dir, err := filepath.Abs("../../../shared/data/mnist")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no MNIST to learn from: %v", err)
	}
	data, err := loadMNIST(dir)
	if err != nil {
		t.Fatal(err)
	}
	d := &digits{test: data.HeldOut, epoch: data.Train.Len()}
	labels := make([]uint8, data.Train.Len())
	for i := range labels {
		labels[i] = uint8(data.Train.Label(i))
	}
	for i := range d.parts {
		indices, err := shard.Part(labels, seed, i, pupilPeers)
		if err != nil {
			t.Fatal(err)
		}
		d.parts[i] = data.Train.Subset(indices)
	}
	if d.model, err = nets.NewMLP(dataset.Inputs, pupilHidden(), dataset.Classes); err != nil {
		t.Fatal(err)
	}
	return d
}

// accuracy is the share of the held-out digits that a model reads rightly, in percent.
func (d *digits) accuracy(x tensor.Vector) float64 {
	share, _ := d.model.Evaluate(x, d.test)
	return 100 * share
}

// steps is the number of local steps of all peers together in so many epochs.
func (d *digits) steps(epochs int) int {
	return epochs * d.epoch / pupilBatch
}

// pupils train all peers of a flock until so many steps have been made together.
type pupils struct {
	model      nets.Model
	samplers   []*dataset.Sampler
	velocities []tensor.Vector
	pace       *rand.Rand
	batch      dataset.Batch
	made, due  int
	constant   bool // the rate does not fall
	faster     float64
	taint      func(*dataset.Batch) // changes the samples of the next step
	strides    [pupilPeers]float64  // length of each peer's last step
	distances  [pupilPeers]float64  // of each peer to its last partner
}

func (d *digits) pupils(t *testing.T, seed uint64, epochs int) *pupils {
	t.Helper()
	p := &pupils{model: d.model, due: d.steps(epochs), pace: rand.New(rand.NewPCG(seed, 5))}
	for i, part := range d.parts {
		sampler, err := dataset.NewSampler(part, pupilBatch, 1000*seed+uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		p.samplers = append(p.samplers, sampler)
		p.velocities = append(p.velocities, make(tensor.Vector, d.model.Layout().Len()))
	}
	return p
}

// Duration differs a little from step to step, as it does on real machines.
func (p *pupils) Duration(int, int, int) time.Duration {
	return pupilStep + time.Duration(p.pace.Int64N(int64(pupilStep)/5)) - pupilStep/10
}

// Step is a step of gradient descent with momentum from the snapshot.
func (p *pupils) Step(peer, _ int, x, delta []float32) {
	if p.over() {
		clear(delta)
		return
	}
	_ = p.samplers[peer].Next(&p.batch) // fails never
	if p.taint != nil {
		p.taint(&p.batch)
	}
	p.model.Gradient(x, &p.batch, delta)
	rates := ratesAt(float64(p.made) / float64(p.due))
	if p.constant {
		rates = ratesAt(0)
	}
	if p.faster > 0 {
		rates.Rate *= p.faster
	}
	rates.Delta(delta, p.velocities[peer], delta, x)
	p.strides[peer] = tensor.Norm2(delta)
	p.made++
}

func (p *pupils) over() bool { return p.made >= p.due }

// ratesAt are the rates at a share of the training.
func ratesAt(progress float64) tensor.MomentumRates {
	return tensor.MomentumRates{Rate: pupilRate * (1 + math.Cos(math.Pi*progress)) / 2, Momentum: pupilMomentum}
}
