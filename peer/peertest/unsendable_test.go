package peertest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// loud is a valley in which one peer's gradients are too long to be sent, though finite.
type loud struct {
	*valley
	who int
}

func (l loud) Gradient(i, n int, x, grad tensor.Vector) (peer.Result, error) {
	r, err := l.valley.Gradient(i, n, x, grad)
	if i == l.who {
		tensor.Scale(grad, 1e9)
	}
	return r, err
}

// Whose gradient cannot be sent is left out itself, and nobody in its stead: the leader of
// a ring, a server and its workers.
func TestWhoseGradientCannotBeSent(t *testing.T) {
	config := func(c averaging.Config) baseline.Config {
		return baseline.Config{Self: c.Self, Deadline: time.Second}
	}
	for name, machine := range map[string]func(averaging.Config) (averaging.Machine, error){
		"allreduce": func(c averaging.Config) (averaging.Machine, error) { return baseline.NewAllReduce(config(c)) },
		"ps-bsp": func(c averaging.Config) (averaging.Machine, error) {
			return baseline.NewParamServer(config(c), baseline.BSP{})
		},
		"ps-asp": func(c averaging.Config) (averaging.Machine, error) {
			return baseline.NewParamServer(config(c), baseline.ASP{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			for who := range 3 {
				o, err := peertest.Simulate(t.Context(), lockstep(machine, loud{newValley(5, 3), who}))
				if err != nil {
					t.Fatal(err)
				}
				for i, each := range o.Each {
					t.Logf("loud %d, peer %d: %d steps", who, i, each.Steps)
					if i != who && each.Steps < 50 {
						t.Errorf("peer %d cannot send, and peer %d makes %d steps", who, i, each.Steps)
					}
				}
				if o.Final.Mean < 0.9 {
					t.Errorf("peer %d cannot send, and the models come to %g", who, o.Final.Mean)
				}
			}
			s := lockstep(machine, newValley(5, 3))
			s.Schedule.Rate = 1e9
			if _, err := peertest.Simulate(t.Context(), s); !errors.Is(err, optim.ErrNotFinite) {
				t.Errorf("at a learning rate of 1e9: %v", err)
			}
		})
	}
}

// lockstep is a simulation of three peers that average gradients.
func lockstep(machine func(averaging.Config) (averaging.Machine, error), task peertest.Task) peertest.Simulation {
	s := simulation(3)
	s.Task, s.Work, s.Limit = task, peer.Work{StepsPerPeer: 60}, time.Hour
	s.Exchange = peer.Exchange{SliceLen: 300, Codec: quant.Policy{Codec: "raw"}, Machine: machine}
	return s
}
