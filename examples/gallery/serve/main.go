// Serve: three shops read digits for their customers while their models learn, each over HTTP with its own model of the
// moment. A customer asks them in turn from before the first step on, and counts how often they are right.
//
//	go run ./examples/gallery/serve [serve.svg]
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"

	"github.com/seed-97356399/murmuration/examples/gallery/digits"
	"github.com/seed-97356399/murmuration/examples/gallery/flock"
	"github.com/seed-97356399/murmuration/examples/gallery/picture"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/serve"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

const shops, steps = 3, 600

func main() { flock.Main("serve.svg", run) }

func run(ctx context.Context, out io.Writer, path string) error {
	model, err := nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)).Build(784)
	if err != nil {
		return err
	}
	var served [shops]serve.Holder // the models that answer
	var addresses []string
	for i := range shops {
		served[i].Swap(digits.Reader{Model: model, Params: model.Init(1).Vector()}, 1)
		server := httptest.NewServer(serve.Handler(&served[i], "")) // on this machine; examples/embed listens for others
		defer server.Close()
		addresses = append(addresses, server.URL)
	}
	right, err := digits.Ask(addresses, func() error {
		return flock.Peers(ctx, shops, func() peer.Config {
			return peer.Config{Run: "shops", Params: model.Init(1), Training: peer.Training{Work: peer.Work{StepsPerPeer: steps}, Schedule: optim.Schedule{Rate: 0.02}}}
		}, func(i int, p *peer.Peer) error { return shop(ctx, i, p, model, &served[i]) })
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "answers right: %.0f %% before it learned, %.0f %% after; %d questions meanwhile\n", right[0].Y, right[len(right)-1].Y, len(right))
	return picture.Lines(path, picture.Axes{Title: "Right answers while the flock learns", Below: fmt.Sprintf("three shops, %d questions over HTTP", len(right)),
		X: "steps of the model that answers", Y: "right, %"}, picture.Curve{Name: "a customer of all three", Points: right})
}

// shop learns from pictures of its own, and puts a newer model up after each 30 steps.
func shop(ctx context.Context, i int, p *peer.Peer, model *nn.Model, served *serve.Holder) error {
	data, err := digits.Load(i)
	if err != nil {
		return err
	}
	gradient := data.Gradient(model)
	put := func() error {
		s := digits.Reader{Model: model, Params: make(tensor.Vector, model.Layout().Len()), Steps: p.Stats().Steps}
		_, err := p.Snapshot(s.Params, 0)
		served.Swap(s, 1)
		return err
	}
	for step := 1; err == nil; step++ {
		if err = p.Step(ctx, gradient); errors.Is(err, peer.ErrRunOver) {
			return errors.Join(p.Close(), put()) // after the last exchanges, which bring the models together
		} else if step%30 == 0 && err == nil {
			err = put()
		}
	}
	return err
}
