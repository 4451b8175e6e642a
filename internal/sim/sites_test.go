package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// terrain is where the peers of a test are: at sites of 8, or all at one.
type terrain int

const (
	together terrain = iota // all at one site, and say nothing of it
	untold                  // at sites of 8, and do not say so
	told                    // at sites of 8, and say so
	imagined                // say so, but the network is the same everywhere
)

func (n terrain) String() string { return [...]string{"together", "untold", "told", "imagined"}[n] }

// at puts a flock there: 1 Gbit/s inside sites, and an uplink of 20 Mbit/s and 60 ms to others, for a model of
// 200,000 values; for smaller ones both are as much slower.
func (n terrain) at(t *testing.T, p plan) plan {
	scale := float64(p.values) / 200_000
	p.config.Terms.Window = 8
	p.config.Link, p.config.Port = sim.Link{Delay: 50 * time.Microsecond}, 125e6*scale
	if n == untold || n == told {
		p.config.Sites.Across = sim.Link{Delay: 60 * time.Millisecond, Bandwidth: 2.5e6 * scale}
		for i := range p.peers {
			p.config.Sites.Of = append(p.config.Sites.Of, i/8)
		}
	}
	if n == told || n == imagined {
		p.place = func(peer int) topology.Place { return topology.Place{Site: fmt.Sprint("site ", peer/8)} }
	}
	p.machine = func(peer int) averaging.Machine { // whose links decide how often they exchange
		m, err := averaging.NewADPSGD(averaging.Config{Self: nameOf(peer), Rand: rand.New(rand.NewPCG(5, uint64(peer)))})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	return p
}

// across are the bytes that went from one site to another.
func (f *flock) across() (bytes float64) {
	for i := range f.replicas {
		bytes += float64(f.world.Counts(i).Across)
	}
	return bytes
}

// TestDelegatesSpeakForTheirSites: models that nobody trains become one as fast as without sites, in the same time, while a
// tenth of the bytes go across; and the sum of all models stays.
func TestDelegatesSpeakForTheirSites(t *testing.T) {
	const run = 20 * time.Second
	var rate, bytes [imagined + 1]float64
	for _, n := range []terrain{untold, told} {
		f := newFlock(t, n.at(t, plan{seed: 5, peers: 16, values: 4000, sliceLen: 500, unclipped: true, config: sim.Config{Task: direct{stepper: idle{}}}}))
		before := f.sum()
		f.world.Run(run / 8)
		start := f.spread()
		f.world.Run(run)
		rate[n], bytes[n] = 2*math.Log(start/f.spread())/(run-run/8).Seconds(), f.across()
		f.comeToRest()
		if moved := drift(before, f.sum()); moved > 1e-6 {
			t.Errorf("the sum moved by %g of itself", moved)
		}
		t.Logf("told: %v; the variance falls by a factor of e in %.2f s; %d exchanges, %.2f MB across", n == told, 1/rate[n], f.total().Initiated, bytes[n]/1e6)
	}
	if rate[told] < 0.6*rate[untold] || bytes[told] > (0.1+1.0/8)*bytes[untold] {
		t.Errorf("told, models become alike at %.2f of the rate, at least 0.6; with %.3f of the bytes across, at most 0.225", rate[told]/rate[untold], bytes[told]/bytes[untold])
	}
}

// school is a flock that learns digits, with what looks at its models.
type school struct {
	*flock
	digits *digits
	looked *dataset.Set
}

func (d *digits) at(t *testing.T, n terrain, seed uint64) school {
	t.Helper()
	training := d.pupils(t, seed, 1000)
	training.constant = true
	s := school{digits: d, flock: newFlock(t, n.at(t, plan{
		seed: seed, peers: pupilPeers, values: d.model.Layout().Len(), sliceLen: 2048, config: sim.Config{Task: direct{stepper: training}},
		initial: func(_ *rand.Rand, _ int, x tensor.Vector) { d.model.Init(seed, x) },
	}))}
	some := make([]int32, 500)
	for i := range some {
		some[i] = int32(i * d.test.Len() / len(some))
	}
	s.looked = d.test.Subset(some)
	return s
}

// accuracy is that of a model, in percent.
func (s school) accuracy(x tensor.Vector) float64 {
	share, _ := s.digits.model.Evaluate(x, s.looked)
	return 100 * share
}

// own is the mean accuracy of the peers' models.
func (s school) own() (mean float64) {
	for _, r := range s.replicas {
		r.Snapshot(s.scratch)
		mean += s.accuracy(s.scratch) / pupilPeers
	}
	return mean
}

// toTarget is the time until the models have an accuracy, in the mean, and the bytes across until then.
func (s school) toTarget(target float64) (took time.Duration, across float64) {
	for s.own() < target && s.world.Now() < 2*time.Minute {
		s.world.Run(s.world.Now() + 100*time.Millisecond)
	}
	return s.world.Now(), s.across()
}

// loadUnlike reads MNIST in such parts that each site has five of the ten digits.
func loadUnlike(t *testing.T) *digits {
	t.Helper()
	d := loadDigits(t)
	var parts [pupilPeers][]int32
	for i := range loaded.data.Train.Len() {
		peer := loaded.data.Train.Label(i)/5*8 + i%8
		parts[peer] = append(parts[peer], int32(i))
	}
	for i, part := range parts {
		d.parts[i] = loaded.data.Train.Subset(part)
	}
	return d
}

// TestSitesLearnSooner: two sites of 8 learn in a third of the time, with a fifth of the bytes across, if their members
// say where they are.
func TestSitesLearnSooner(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: trains for some seconds")
	}
	d := loadDigits(t)
	slow, many := d.at(t, untold, 1).toTarget(85)
	fast, few := d.at(t, told, 1).toTarget(85)
	t.Logf("85 %%: %s and %.2f MB across, %s and %.2f MB told", slow, many/1e6, fast, few/1e6)
	if 3*fast > slow || 5*few > many {
		t.Errorf("told, it takes %s of %s, and %.2f of %.2f MB across", fast, slow, few/1e6, many/1e6)
	}
}

// TestSitesTable logs what sites are worth, by how unlike the data of peers are, and what they cost where the network is
// the same everywhere.
func TestSitesTable(t *testing.T) {
	if !*tables {
		t.Skip("give -tables to see what sites are worth")
	}
	for _, c := range []struct {
		name   string
		shard  dataset.Shard
		target float64
	}{{"alike", dataset.Shard{}, 92}, {"Dirichlet 0.3", dataset.Shard{Alpha: 0.3}, 85}, {"Dirichlet 0.1", dataset.Shard{Alpha: 0.1}, 75}} {
		var took [imagined + 1]float64
		for _, n := range []terrain{together, imagined, untold, told} {
			for seed := range uint64(3) {
				one, across := loadCut(t, c.shard, seed+1).at(t, n, seed+1).toTarget(c.target)
				took[n] += one.Seconds() / 3
				t.Logf("%s, %s, seed %d: %.1f s to %g %%, %.2f MB across", c.name, n, seed+1, one.Seconds(), c.target, across/1e6)
			}
		}
		t.Logf("%s: %.1f times sooner; where all are together it takes %.2f times as long", c.name, took[untold]/took[told], took[imagined]/took[together])
	}
	for _, n := range []terrain{together, untold, told} {
		s := loadUnlike(t).at(t, n, 1)
		s.world.Run(12 * time.Second)
		t.Logf("five digits at each site, %s: after 12 s models have %.1f %%, their mean %.1f, and %.2f MB went across",
			n, s.own(), s.accuracy(s.mean(func(int) bool { return true })), s.across()/1e6)
	}
}
