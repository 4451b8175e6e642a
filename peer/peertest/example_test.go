package peertest_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// points is a task: each peer has a number of its own, and all look for the one that is
// nearest to everybody's, which is the mean.
type points []float32

// Params implements peertest.Task.
func (points) Params() *tensor.Params {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "at", Shape: []int{1}})
	if err != nil {
		log.Fatal(err)
	}
	return tensor.NewParams(layout)
}

// Gradient implements peertest.Task.
func (p points) Gradient(i, _ int, x, grad tensor.Vector) (peer.Result, error) {
	grad[0] = x[0] - p[i]
	return peer.Result{Loss: float64(grad[0]) * float64(grad[0]), Samples: 1}, nil
}

// Evaluate implements peertest.Task.
func (p points) Evaluate(x tensor.Vector, _ bool) (accuracy, loss float64) {
	for _, at := range p {
		loss += float64(x[0]-at) * float64(x[0]-at) / float64(len(p))
	}
	return 1 / (1 + loss), loss
}

// Four peers that know one number each, of which one takes ten times as long for a step,
// find the mean of all four in virtual time: no socket, no clock, and each run is the
// same to the last bit.
func ExampleSimulate() {
	outcome, err := peertest.Simulate(context.Background(), peertest.Simulation{
		Peers:    4,
		Task:     points{2, 4, 3, 3}, // the mean is 3, the mean square distance from it 0.5
		Schedule: optim.Schedule{Rate: 0.01},
		Work:     peer.Work{StepsPerPeer: 1000},
		Exchange: peer.Exchange{Pace: averaging.Pace{Every: 1}},
		World: peertest.World{
			Compute: peertest.Compute{Step: 10 * time.Millisecond, Slow: map[int]float64{2: 10}},
			Links:   peertest.Links{Link: memnet.Link{Delay: time.Millisecond}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d steps in %.0f s, the slow peer did %d\n", outcome.Steps, outcome.Seconds, outcome.Each[2].Steps)
	fmt.Printf("loss %.2f, models %.3f apart\n", outcome.Final.TestLoss, outcome.Final.Consensus)
	// Output:
	// 4000 steps in 13 s, the slow peer did 130
	// loss 0.50, models 0.000 apart
}
