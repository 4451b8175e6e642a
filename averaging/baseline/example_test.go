package baseline_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// slope is a task with one parameter, that leads everybody to 3.
type slope struct{}

// Params implements peertest.Task.
func (slope) Params() *tensor.Params {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "at", Shape: []int{1}})
	if err != nil {
		log.Fatal(err)
	}
	return tensor.NewParams(layout)
}

// Gradient implements peertest.Task.
func (slope) Gradient(_, _ int, x, grad tensor.Vector) (peer.Result, error) {
	grad[0] = x[0] - 3
	return peer.Result{Samples: 1}, nil
}

// Evaluate implements peertest.Task.
func (slope) Evaluate(x tensor.Vector, _ bool) (accuracy, loss float64) {
	loss = float64(x[0]-3) * float64(x[0]-3)
	return 1 / (1 + loss), loss
}

// A rival takes the place of AD-PSGD by Exchange.Machine, in a simulation as in a peer.
// With a worker that is ten times as slow, AllReduce makes everybody wait for it.
func ExampleNewAllReduce() {
	ring := func(c averaging.Config) (averaging.Machine, error) {
		return baseline.NewAllReduce(baseline.Config{Self: c.Self, Deadline: c.Deadline})
	}
	for _, slow := range []float64{1, 10} {
		for _, machine := range []func(averaging.Config) (averaging.Machine, error){nil, ring} { // nil is AD-PSGD
			outcome, err := peertest.Simulate(context.Background(), peertest.Simulation{
				Peers:    8,
				Task:     slope{},
				Schedule: optim.Schedule{Rate: 0.01},
				Work:     peer.Work{StepsPerPeer: 100},
				Exchange: peer.Exchange{Machine: machine},
				World:    peertest.World{Compute: peertest.Compute{Step: 10 * time.Millisecond, Slow: map[int]float64{0: slow}}},
			})
			if err != nil {
				log.Fatal(err)
			}
			fmt.Printf("%.0f s ", outcome.Seconds)
		}
	}
	// Output: 1 s 1 s 1 s 10 s
}
