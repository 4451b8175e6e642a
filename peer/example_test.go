package peer_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// A service gives the peer its model, its gradient and the addresses of others. The
// first peer of a run has none to give.
func Example() {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "position", Shape: []int{2}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	p, err := peer.Start(ctx, peer.Config{
		Run:      "valley",
		Params:   tensor.NewParams(layout),
		Network:  peer.Network{Listen: []string{"127.0.0.1:0"}},
		Training: peer.Training{Schedule: optim.Schedule{Rate: 0.1}, Work: peer.Work{StepsPerPeer: 200}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	for err == nil {
		err = p.Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) {
			grad[0], grad[1] = x[0]-3, x[1]+1 // towards (3, −1)
			return peer.Result{Samples: 1}, nil
		})
	}
	if !errors.Is(err, peer.ErrRunOver) {
		log.Fatal(err)
	}
	trained := make(tensor.Vector, layout.Len())
	p.Snapshot(trained, 0)
	fmt.Printf("%.1f after %d steps\n", trained, p.Stats().Steps)
	// Output: [3.0 -1.0] after 200 steps
}
