package peertest_test

import (
	"testing"
	"testing/synctest"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// counted is a valley whose first value counts the peer's own steps, as the layer of a batch
// normalization does.
type counted struct {
	*valley
	t     *testing.T
	calls []int // by peer
}

func newCounted(t *testing.T, peers int) *counted {
	return &counted{newValley(5, peers), t, make([]int, peers)}
}

func (*counted) Params() *tensor.Params {
	layout, err := tensor.NewLayout(
		tensor.Spec{Name: "seen", Kind: tensor.Statistic, Sharing: tensor.Local},
		tensor.Spec{Name: "w", Shape: []int{1000}})
	if err != nil {
		panic(err) // the specs are constants
	}
	return tensor.NewParams(layout)
}

func (c *counted) Gradient(i, samples int, x, grad tensor.Vector) (peer.Result, error) {
	if x[0] != float32(c.calls[i]) {
		c.t.Errorf("peer %d has counted %g in step %d", i, x[0], c.calls[i])
	}
	c.calls[i]++
	result, err := c.valley.Gradient(i, samples, x[1:], grad[1:])
	grad[0] = 1
	return result, err
}

// TestStatisticsOfAPeerAreItsOwn: whichever algorithm trains, each step finds what the ones
// before it have counted, whatever others count and the optimizer decays.
func TestStatisticsOfAPeerAreItsOwn(t *testing.T) {
	server := func(gate baseline.Gate) func(averaging.Config) (averaging.Machine, error) {
		return func(c averaging.Config) (averaging.Machine, error) {
			return baseline.NewParamServer(baseline.Config{Self: c.Self}, gate)
		}
	}
	for name, machine := range map[string]func(averaging.Config) (averaging.Machine, error){
		"adpsgd": func(c averaging.Config) (averaging.Machine, error) { return averaging.NewADPSGD(c) },
		"dpsgd": func(c averaging.Config) (averaging.Machine, error) {
			return baseline.NewDPSGD(baseline.Config{Self: c.Self})
		},
		"allreduce": func(c averaging.Config) (averaging.Machine, error) {
			return baseline.NewAllReduce(baseline.Config{Self: c.Self})
		},
		"bsp": server(baseline.BSP{}),
		"asp": server(baseline.ASP{}),
	} {
		t.Run(name, func(t *testing.T) {
			s := simulation(4)
			task := newCounted(t, s.Peers)
			s.Task, s.Exchange.Machine = task, machine
			s.World.Compute.Slow = map[int]float64{2: 2} // so that peers do not count alike
			s.Optimizer = func() optim.Optimizer { return &optim.SGD{Momentum: 0.9, WeightDecay: 0.1} }
			if o := simulate(t, s); o.Steps < 100*uint64(s.Peers) {
				t.Errorf("%d steps", o.Steps)
			}
		})
	}
}

// TestStatisticsOfRealPeers: as in virtual time.
func TestStatisticsOfRealPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const peers = 3
		task := newCounted(t, peers)
		flock := peertest.Start(t, peertest.Config{Peers: peers, Params: task.Params, Configure: func(_ int, c *peer.Config) {
			s := simulation(peers)
			c.Training.Schedule, c.Training.Work, c.Training.Exchange = s.Schedule, s.Work, s.Exchange
			c.Training.Optimizer = &optim.AdamW{WeightDecay: 0.1}
		}})
		flock.Train(t.Context(), func(i int, x, grad tensor.Vector) (peer.Result, error) { return task.Gradient(i, 0, x, grad) })
		for i, model := range flock.Models() {
			if seen := model[0]; seen != float32(flock.Peers[i].Stats().Steps) {
				t.Errorf("peer %d has counted %g steps of %d", i, seen, flock.Peers[i].Stats().Steps)
			}
		}
	})
}
