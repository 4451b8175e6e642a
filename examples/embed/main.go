// Embed is the smallest service that trains with others: it learns to read digits
// from images of its own, together with whoever runs it too.
//
//	go run ./examples/embed                      # the first; it prints its addresses
//	go run ./examples/embed ADDRESS [ADDRESS…]   # each further one
//
// It shows how little a service has to write; examples/gossipnode shows how much
// it may.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/tensor"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], 2000); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

// run trains from images of this process's own until every peer has taken steps
// gradient steps on average, and reports the accuracy.
func run(ctx context.Context, seeds []string, steps uint64) error {
	data, err := dataset.Load(dataset.Config{Name: "glyphs", PeerSeed: rand.Uint64()})
	if err != nil {
		return err
	}
	model, err := nets.ByName("mlp", data.Train.Shape(), data.Train.Classes())
	if err != nil {
		return err
	}
	batches, err := dataset.NewSampler(data.Train, 32, rand.Uint64())
	if err != nil {
		return err
	}
	params := tensor.NewParams(model.Layout())
	model.Init(1, params.Vector()) // the same initial values at every peer
	var batch dataset.Batch
	gradient := func(x, grad tensor.Vector) (peer.Result, error) {
		batches.Next(&batch)
		return peer.Result{Loss: model.Gradient(x, &batch, grad), Samples: batch.Len()}, nil
	}
	trained, err := train(ctx, params, seeds, steps, gradient)
	if err != nil {
		return err
	}
	accuracy, _ := model.Evaluate(trained, data.HeldOut)
	fmt.Printf("%.1f %% of unseen digits read right\n", 100*accuracy)
	return nil
}

// gradientFunc computes a gradient from the service's own data.
type gradientFunc = func(x, grad tensor.Vector) (peer.Result, error)

// train is all that a service needs of the library.
func train(ctx context.Context, params *tensor.Params, seeds []string, steps uint64, gradient gradientFunc) (tensor.Vector, error) {
	log := zap.Must(zap.NewDevelopment(zap.IncreaseLevel(zap.InfoLevel)))
	work := peer.Work{StepsPerPeer: steps}
	// The README shows these lines.
	p, err := peer.Start(ctx, peer.Config{Run: "digits", Params: params, Join: seeds, Work: work, Log: log})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	for err == nil {
		err = p.Step(ctx, gradient)
	}
	trained := make(tensor.Vector, params.Layout().Len())
	_, failed := p.Snapshot(trained, 0)
	// Until here.
	if !errors.Is(err, peer.ErrRunOver) {
		return nil, err
	}
	return trained, failed
}
