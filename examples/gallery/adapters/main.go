// Adapters: four offices have one model, which reads upright digits, and pictures that are upside down. They teach it these by
// two thin matrices, which alone are trained and sent: the base stays as it is.
//
//	go run ./examples/gallery/adapters [adapters.svg]
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/seed-97356399/murmuration/examples/gallery/digits"
	"github.com/seed-97356399/murmuration/examples/gallery/flock"
	"github.com/seed-97356399/murmuration/examples/gallery/picture"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

const offices, steps = 4, 400

func main() { flock.Main("adapters.svg", run) }

func run(ctx context.Context, out io.Writer, path string) error {
	// What down and up make of the pixels is added to what base makes of them; it begins as nothing.
	model, err := nn.Sequential(nn.ResidualVia(nn.Named("base", nn.Linear(784, 128)), nn.Named("down", nn.LinearNoBias(784, 8)),
		nn.Named("up", nn.WithStart(nn.LinearNoBias(8, 128), nn.Fill(0)))), nn.ReLU(), nn.Linear(128, 10)).Build(784)
	if err != nil {
		return err
	}
	base := model.Init(1).Vector()
	if upright, err := digits.Load(offices); err != nil || upright.Learn(model, base, 1000, 0.1) != nil {
		return errors.Join(errors.New("no base"), err)
	}
	var specs []tensor.Spec
	sent := 0
	for _, r := range model.Layout().Ranges() {
		if strings.Contains(r.Name, "down") || strings.Contains(r.Name, "up") {
			sent += r.Len
		} else {
			r.Sharing = tensor.Frozen
		}
		specs = append(specs, r.Spec)
	}
	layout, err := tensor.NewLayout(specs...)
	if err != nil {
		return err
	}
	var curves [offices]picture.Curve
	err = flock.Peers(ctx, offices, func() peer.Config {
		params := tensor.NewParams(layout)
		copy(params.Vector(), base)
		return peer.Config{Run: "upside-down", Params: params, Training: peer.Training{Work: peer.Work{StepsPerPeer: steps}, Schedule: optim.Schedule{Rate: 0.02}}}
	}, func(i int, p *peer.Peer) error {
		data, err := digits.Load(i)
		if err != nil {
			return err
		}
		data.Turned = true
		curves[i].Name = fmt.Sprint("office ", i+1)
		curves[i].Points, err = data.Train(ctx, p, model, 40)
		return err
	})
	if err != nil {
		return err
	}
	about, seen := fmt.Sprintf("%d of %d values are trained and sent", sent, layout.Len()), curves[0].Points
	fmt.Fprintf(out, "upside down %.0f %%, %.0f %% before; %s\n", seen[len(seen)-1].Y, seen[0].Y, about)
	return picture.Lines(path, picture.Axes{Title: "Adapters over a frozen base: digits upside down", Below: about, X: "steps", Y: "accuracy, %"}, curves[:]...)
}
