package sim_test

import (
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

// likeCNN is the readiness of the picture model cnn: its dense layer has three quarters of the values, and two convolutions
// most of the work.
var likeCNN = []sim.Ready{{From: 4800, Done: 0.357}, {From: 160, Done: 0.962}}

const cnnValues = 20_490

// overlapping has gradients of whole numbers, whose last values are ready first.
type overlapping struct {
	*slope
	readiness []sim.Ready
}

func (o overlapping) Readiness(int) []sim.Ready { return o.readiness }

// overlapped is what steps of a flock took and sent.
type overlapped struct {
	step   time.Duration
	sent   float64 // bytes, of a peer in a step
	digest [32]byte
}

// overlap trains peers over a link, whose gradients are ready so.
func overlap(t *testing.T, peers int, link sim.Link, readiness []sim.Ready, make1 machines) overlapped {
	t.Helper()
	const steps = 40
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{cnnValues}})
	if err != nil {
		t.Fatal(err)
	}
	codec, _ := coding.ByName("raw")
	task := overlapping{newSlope(peers, cnnValues), readiness}
	f := &flock{t: t, scratch: make(tensor.Vector, cnnValues)}
	config := sim.Config{Task: task, Link: link, Port: link.Bandwidth, Terms: replica.Terms{Plan: coding.Uniform(codec)}, Rand: rand.New(rand.NewPCG(1, 1))}
	config.Hooks.Broke = func(peer, partner int, err error) { t.Errorf("peer %d with %d: %v", peer, partner, err) }
	for i := range peers {
		f.add(tensor.NewParams(layout), plan{}, i)
		machine, err := make1(nameOf(i), i)
		if err != nil {
			t.Fatal(err)
		}
		config.Members = append(config.Members, sim.Member{ID: nameOf(i), Machine: machine, Replica: f.replicas[i], Ledger: f.ledgers[i], Optimizer: descending{task.slope, i}})
	}
	if f.world, err = sim.New(config); err != nil {
		t.Fatal(err)
	}
	until := func(steps int) time.Duration {
		for f.total().Steps < steps*peers {
			f.world.Run(f.world.Now() + 50*time.Microsecond)
			if f.world.Now() > time.Minute {
				t.Fatalf("%+v in a minute", f.total())
			}
		}
		return f.world.Now()
	}
	began := until(steps / 4) // by then stripes follow what was measured
	sent := f.total().Sent
	took := until(steps) - began
	made := steps - steps/4
	return overlapped{step: took / time.Duration(made), sent: float64(f.total().Sent-sent) / float64(peers*made), digest: f.world.Digest()}
}

// TestAllReduceOverlaps: bit by bit AllReduce is faster, with the same models, to the last bit, for hardly more bytes.
// Where transfer and computation take equally long, twice as fast is impossible, since nothing can be sent in the first
// 0.357 of a step: 2 / 1.357 = 1.47.
func TestAllReduceOverlaps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		peers  int
		link   sim.Link
		shape  topology.Shape
		faster float64
	}{
		{2, sim.Link{Delay: 50 * time.Microsecond, Bandwidth: 8e6}, topology.Exponential, 1.4},
		{4, sim.Link{Delay: 200 * time.Microsecond, Bandwidth: 16e6}, topology.Exponential, 1.35},
		{5, sim.Link{Delay: 50 * time.Microsecond, Bandwidth: 20e6}, topology.Exponential, 1.5},
		{4, sim.Link{Delay: 50 * time.Microsecond, Bandwidth: 16e6}, topology.Ring, 1.3},
		{4, sim.Link{Delay: 50 * time.Microsecond, Bandwidth: 32e6}, topology.Tree, 1.5},
	} {
		machine := allReduce(baseline.Config{Topology: c.shape})
		whole, gradual := overlap(t, c.peers, c.link, nil, machine), overlap(t, c.peers, c.link, likeCNN, machine)
		t.Logf("%d peers, %v: %v a step, %.0f bytes; bit by bit %v, %.0f bytes: %.2f × faster", c.peers, c.shape, whole.step, whole.sent, gradual.step, gradual.sent, float64(whole.step)/float64(gradual.step))
		if whole.digest != gradual.digest {
			t.Errorf("%d peers, %v: other models", c.peers, c.shape)
		}
		if float64(whole.step) < c.faster*float64(gradual.step) || gradual.sent > 1.08*whole.sent {
			t.Errorf("%d peers, %v: want %.2f × faster, and at most 8 %% more bytes", c.peers, c.shape, c.faster)
		}
	}
}

// TestPushesOverlap: bit by bit a flock with a parameter server, or several, is faster, with the same models, for hardly
// more bytes. What a worker pulls, it waits for.
func TestPushesOverlap(t *testing.T) {
	t.Parallel()
	link := sim.Link{Delay: 50 * time.Microsecond, Bandwidth: 32e6}
	for _, c := range []struct {
		servers int
		faster  float64
	}{{1, 1.08}, {2, 1.08}} {
		machine := func(self topology.PeerID, _ int) (averaging.Machine, error) {
			return baseline.NewParamServers(baseline.Config{Self: self}, make([]topology.PeerID, c.servers), baseline.BSP{})
		}
		whole, gradual := overlap(t, 4, link, nil, machine), overlap(t, 4, link, likeCNN, machine)
		t.Logf("%d servers: %v a step, %.0f bytes; bit by bit %v, %.0f bytes: %.2f × faster", c.servers, whole.step, whole.sent, gradual.step, gradual.sent, float64(whole.step)/float64(gradual.step))
		if whole.digest != gradual.digest {
			t.Errorf("%d servers: other models", c.servers)
		}
		if float64(whole.step) < c.faster*float64(gradual.step) || gradual.sent > 1.08*whole.sent {
			t.Errorf("%d servers: want %.2f × faster, and at most 8 %% more bytes", c.servers, c.faster)
		}
	}
}
