package peertest_test

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"testing"
	"testing/synctest"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestSimulatedStepsAreThoseOfPeers: a peer that trains alone ends with the same model,
// byte for byte, in virtual time and as a real one, whoever makes its steps.
func TestSimulatedStepsAreThoseOfPeers(t *testing.T) {
	optimizers := map[string]func() optim.Optimizer{
		"sgd":   func() optim.Optimizer { return &optim.SGD{Momentum: 0.9} },
		"adamw": func() optim.Optimizer { return &optim.AdamW{WeightDecay: 0.1} },
		"lion":  func() optim.Optimizer { return &optim.Lion{Clip: 1} },
	}
	machines := map[string]func(averaging.Config) (averaging.Machine, error){
		"adpsgd": func(c averaging.Config) (averaging.Machine, error) { return averaging.NewADPSGD(c) },
		"allreduce": func(c averaging.Config) (averaging.Machine, error) {
			return baseline.NewAllReduce(baseline.Config{Self: c.Self})
		},
	}
	for name, optimizer := range optimizers {
		for kind, machine := range machines {
			t.Run(name+" "+kind, func(t *testing.T) {
				s := simulation(1)
				s.Optimizer, s.Exchange.Machine, s.Schedule.Warmup = optimizer, machine, 0.1
				simulated := simulate(t, s)
				synctest.Test(t, func(t *testing.T) {
					task := newValley(5, 1)
					flock := peertest.Start(t, peertest.Config{Peers: 1, Params: newModel, Configure: func(_ int, c *peer.Config) {
						c.Training.Optimizer, c.Training.Schedule, c.Training.Work, c.Training.Exchange = optimizer(), s.Schedule, s.Work, s.Exchange
					}})
					flock.Train(t.Context(), func(i int, x, grad tensor.Vector) (peer.Result, error) { return task.Gradient(i, 0, x, grad) })
					var bytes []byte
					for _, v := range flock.Models()[0] {
						bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(v))
					}
					if sha256.Sum256(bytes) != simulated.Digest || flock.Peers[0].Stats().Steps != simulated.Steps {
						t.Errorf("%d steps lead elsewhere than %d in virtual time", flock.Peers[0].Stats().Steps, simulated.Steps)
					}
				})
			})
		}
	}
}
