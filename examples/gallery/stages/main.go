// Stages: four machines train a model that is larger than each of them may hold. It is cut into two stages, with two machines
// for each: a machine has the parameters, the optimizer's state and the activations of its stage only. All have pictures.
//
//	go run ./examples/gallery/stages [stages.svg]
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gonum.org/v1/plot/plotter"

	"github.com/seed-97356399/murmuration/examples/gallery/digits"
	"github.com/seed-97356399/murmuration/examples/gallery/flock"
	"github.com/seed-97356399/murmuration/examples/gallery/picture"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/pipeline"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

const machines, steps = 4, 150

func main() { flock.Main("stages.svg", run) }

func run(ctx context.Context, out io.Writer, path string) error {
	model, err := nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10)).Build(784)
	if err != nil {
		return err
	}
	plan, err := pipeline.Cut(model, nn.CrossEntropy(), 1) // the first stage has the first layer
	if err != nil {
		return err
	}
	seen, accuracy := [machines]picture.Curve{}, [machines]float64{}
	err = flock.Nodes(ctx, machines, peer.Network{Run: "halves"}, func(i int, node *peer.Node) error {
		data, err := digits.Load(i)
		if err != nil {
			return err
		}
		place, err := pipeline.Choose(ctx, node, plan) // the stage that needs a machine most
		if err != nil {
			return err
		}
		if place.Params == nil { // nobody has had the stage before
			place.Params = plan.Init(place.Stage, 1)
		}
		seen[i].Name = fmt.Sprintf("machine %d, stage %d: %d values", i+1, place.Stage+1, place.Params.Layout().Len())
		trainer, err := node.Train(ctx, peer.Training{Params: place.Params, Stage: plan.Stage(place.Stage),
			Schedule: optim.Schedule{Rate: 0.08}, Work: peer.Work{Steps: machines * steps}})
		if err != nil {
			return err
		}
		defer trainer.Close()
		p, err := pipeline.New(node, trainer, pipeline.Config{Plan: plan, Stage: place.Stage, Examples: digits.Batch, Batch: 4,
			Feed: func(context.Context) (x, y tensor.Vector, err error) { return data.Next() }})
		if err != nil {
			return err
		}
		defer p.Close()
		for step := 1; err == nil; step++ {
			if err = p.Step(ctx); p.Loss() > 0 && step%5 == 0 {
				seen[i].Points = append(seen[i].Points, plotter.XY{X: float64(step), Y: p.Loss()})
			}
		}
		if whole, fault := p.Whole(ctx); errors.Is(err, peer.ErrRunOver) && fault == nil { // its stage, and a copy of the other one
			accuracy[i], err = data.Accuracy(model, whole.Vector()), nil
		}
		return errors.Join(err, p.Linger(ctx))
	})
	if err != nil {
		return err
	}
	about := fmt.Sprintf("%d values in all; the whole model reads %.0f %%", model.Layout().Len(), accuracy[0])
	fmt.Fprintln(out, seen[0].Name+";", about)
	return picture.Lines(path, picture.Axes{Title: "A model larger than one machine, in two stages", Below: about, X: "steps of this machine", Y: "loss of its own pictures"}, seen[:]...)
}
