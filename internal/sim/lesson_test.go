package sim_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// lesson is one training of a flock on MNIST.
type lesson struct {
	seed     uint64
	epochs   int
	pace     averaging.Pace
	policy   quant.Policy
	sliceLen int // the default
	// difference of averaged models, in lengths of a step, by which peers talk; 0 if by the pace
	difference float64
	aware      bool    // machines are told strides and distances
	merge      bool    // at the end
	outer      float64 // momentum from one exchange to the next
	port       float64 // bytes a second that the first peer sends and receives at most, 0 for any number
}

// outcome is what a lesson has led to.
type outcome struct {
	accuracy  float64 // of the mean of the models, in percent
	slow      float64 // and of the first peer's, which may have a slow port
	sent      float64 // bytes, of all peers together
	exchanges int
	blocks    int     // of lattices, in all exchanges
	again     int     // of these, those that failed, each time counted
	halfway   float64 // consensus distance in the middle of the lesson
	apart     float64 // and at its end, before the last exchanges
}

// perPeer is what a peer has sent, on average, in bytes.
func (o outcome) perPeer() float64 { return o.sent / pupilPeers }

// bits is how many bits an exchange has taken for each parameter, there and back.
func (o outcome) bits(values int) float64 { return 8 * o.sent / float64(o.exchanges*values) }

// take trains a flock.
func (d *digits) take(t *testing.T, c lesson) outcome {
	t.Helper()
	training := d.pupils(t, c.seed, c.epochs)
	f := d.flock(t, c, training)
	if err := f.world.SetPort(0, c.port); err != nil {
		t.Fatal(err)
	}
	var o outcome
	for !training.over() {
		f.world.Run(f.world.Now() + pupilStep)
		if o.halfway == 0 && 2*training.made >= training.due {
			o.halfway = f.consensus()
		}
	}
	o.apart = f.consensus()
	f.comeToRest()
	all := f.total()
	if all.Failed > 0 {
		t.Errorf("exchanges broke off: %+v", all)
	}
	o.sent, o.exchanges = float64(all.Sent), all.Initiated
	o.again, o.blocks = all.Retransmitted, all.Initiated*f.replicas[0].SharedBlocks()
	o.accuracy = d.accuracy(f.mean(func(int) bool { return true }))
	o.slow = d.accuracy(f.mean(func(peer int) bool { return peer == 0 }))
	return o
}

// flock puts the peers of a lesson into a world with links that take a twentieth of a
// step for an exchange.
func (d *digits) flock(t *testing.T, c lesson, training *pupils) *flock {
	t.Helper()
	layout := d.model.Layout()
	f := &flock{t: t, scratch: make(tensor.Vector, layout.Len())}
	config := sim.Config{
		Task: direct{stepper: training}, Link: sim.Link{Delay: 50 * time.Microsecond, Bandwidth: 1e9},
		Terms: replica.Terms{Window: 4}, Rand: rand.New(rand.NewPCG(c.seed, 2)),
	}
	for i := range pupilPeers {
		params := tensor.NewParams(layout)
		d.model.Init(c.seed, params.Vector())
		f.add(params, plan{sliceLen: c.sliceLen}, i)
		machine, err := averaging.NewADPSGD(averaging.Config{Self: nameOf(i), Pace: c.pace, Rand: rand.New(rand.NewPCG(c.seed, uint64(100+i)))})
		if err != nil {
			t.Fatal(err)
		}
		member := sim.Member{ID: nameOf(i), Machine: machine, Replica: f.replicas[i], Ledger: f.ledgers[i], Optimizer: asIs{}}
		if c.outer > 0 {
			member.Optimizer = &optim.Outer{Inner: asIs{}, Every: c.pace.Every, Momentum: c.outer}
		}
		if c.merge {
			member.Machine = merging(t, machine, i, 0, time.Second)
		}
		if c.difference > 0 {
			member.Machine = &differing{ADPSGD: machine, t: t, lengths: c.difference, peer: i, training: training, flock: f}
		}
		if c.aware {
			member.Machine = &aware{machine, i, training, f}
		}
		config.Members = append(config.Members, member)
	}
	if c.aware {
		config.Hooks.Opened = func(s *sim.Stream) { f.approach(training, s) }
	}
	if err := c.policy.Validate(layout); err != nil {
		t.Fatal(err)
	}
	config.Terms.Plan = c.policy.Plan(f.replicas[0].JointLayers(), coding.Codec{})
	var err error
	if f.world, err = sim.New(config); err != nil {
		t.Fatal(err)
	}
	return f
}

// consensus is the root mean square distance of the models from their mean.
func (f *flock) consensus() float64 { return f.spread() * math.Sqrt(float64(len(f.scratch))) }
