package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/pipeline"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// Two members train a model together of which each has one stage. Both have rows.
func Example() {
	model, err := nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2)).Build(2)
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := pipeline.Cut(model, nn.CrossEntropy(), 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	net, founder := memnet.New(memnet.Config{}), []string(nil)
	var members sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		node, err := join(net, name, founder)
		if err != nil {
			fmt.Println(err)
			return
		}
		founder = node.JoinAddresses()[:1]
		members.Go(func() {
			defer node.Close()
			if err := train(node, plan); !errors.Is(err, peer.ErrRunOver) {
				fmt.Println(err)
			}
		})
	}
	members.Wait()
	fmt.Println("both stages are trained")
	// Output: both stages are trained
}

func join(net *memnet.Network, name string, founder []string) (*peer.Node, error) {
	transport, err := net.Transport(name)
	if err != nil {
		return nil, err
	}
	membership, err := net.Membership(transport, "halves")
	if err != nil {
		return nil, err
	}
	return peer.Join(context.Background(), peer.Network{Run: "halves", Transport: transport, Membership: membership, Join: founder})
}

// train takes a stage that needs a member, and trains it until the run is over for all.
func train(node *peer.Node, plan pipeline.Plan) error {
	ctx := context.Background()
	place, err := pipeline.Choose(ctx, node, plan)
	if err != nil {
		return err
	}
	if place.Params == nil { // nobody has had the stage before
		place.Params = plan.Init(place.Stage, 1)
	}
	trainer, err := node.Train(ctx, peer.Training{
		Params: place.Params, Stage: plan.Stage(place.Stage), Schedule: optim.Schedule{Rate: 0.1}, Work: peer.Work{Steps: 40},
	})
	if err != nil {
		return err
	}
	defer trainer.Close()
	p, err := pipeline.New(node, trainer, pipeline.Config{Plan: plan, Stage: place.Stage, Feed: points})
	if err != nil {
		return err
	}
	defer p.Close()
	for err == nil {
		err = p.Step(ctx)
	}
	return errors.Join(err, p.Linger(ctx))
}

// points are rows of this member: a point, and whether it lies in a ring.
func points(context.Context) (x, y tensor.Vector, err error) {
	for range 16 {
		a, b := rand.Float32()*2-1, rand.Float32()*2-1
		x, y = append(x, a, b), append(y, 0)
		if r := a*a + b*b; r > 0.2 && r < 0.7 {
			y[len(y)-1] = 1
		}
	}
	return x, y, nil
}
