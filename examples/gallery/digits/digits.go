// Package digits stands in for the data of a member of the gallery's flocks: pictures of digits that it alone has.
package digits

import (
	"context"
	"errors"
	"slices"

	"gonum.org/v1/plot/plotter"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// Pixels are the values of a picture, and Batch is how many pictures Next gives.
const (
	Pixels = 28 * 28
	Batch  = 32
)

// pictures are those of a member, and held out those that all are judged by.
const pictures, heldOut = 3000, 1000

// Data is what one member has. It belongs to one goroutine.
type Data struct {
	// Turned pictures are upside down.
	Turned bool

	batches *dataset.Sampler
	batch   dataset.Batch
	test    dataset.Batch
}

// Load draws the pictures of a member, from 0.
func Load(member int) (*Data, error) {
	own := make([]int32, pictures)
	for i := range own {
		own[i] = int32(member*pictures + i)
	}
	set, err := dataset.Glyphs(1, own)
	if err != nil {
		return nil, err
	}
	test, err := dataset.HeldOutGlyphs(heldOut)
	if err != nil {
		return nil, err
	}
	d := &Data{}
	if d.batches, err = dataset.NewSampler(set, Batch, uint64(member)); err != nil {
		return nil, err
	}
	test.Fill(&d.test, 0, heldOut)
	return d, nil
}

// Next are pictures of this member and what they show, until Next is called again.
func (d *Data) Next() (x, y tensor.Vector, err error) {
	err = d.batches.Next(&d.batch)
	return d.turn(d.batch.X), nn.Labels(nil, d.batch.Labels), err
}

// Gradient is what Step takes: each time that it is called, the gradient of the next pictures of this member.
func (d *Data) Gradient(model *nn.Model) func(x, grad tensor.Vector) (peer.Result, error) {
	trainer := model.Trainer(Batch, nn.CrossEntropy())
	return func(x, grad tensor.Vector) (peer.Result, error) {
		pictures, labels, err := d.Next()
		if err != nil {
			return peer.Result{}, err
		}
		return peer.Result{Loss: trainer.Gradient(x, grad, pictures, labels), Samples: Batch}, nil
	}
}

// Learn makes steps of plain gradient descent without a flock.
func (d *Data) Learn(model *nn.Model, params tensor.Vector, steps int, rate float32) error {
	gradient, grad := d.Gradient(model), make(tensor.Vector, len(params))
	for range steps {
		if _, err := gradient(params, grad); err != nil {
			return err
		}
		tensor.Axpy(params, -rate, grad)
	}
	return nil
}

// HeldOut are the pictures that all are judged by, and what they show.
func (d *Data) HeldOut() (x tensor.Vector, labels []uint8) {
	return d.turn(slices.Clone(d.test.X)), d.test.Labels
}

// turn turns pictures in place, if they are to be.
func (d *Data) turn(x tensor.Vector) tensor.Vector {
	for i := 0; d.Turned && i < len(x); i += Pixels {
		slices.Reverse(x[i : i+Pixels])
	}
	return x
}

// Accuracy is the share of held-out pictures that a model reads rightly, in percent.
func (d *Data) Accuracy(model *nn.Model, params tensor.Vector) float64 {
	x, labels := d.HeldOut()
	out, right := make(tensor.Vector, 10*len(labels)), 0
	model.Predict(params, out, x)
	for i, l := range labels {
		if nn.Argmax(out[10*i:10*i+10]) == int(l) {
			right++
		}
	}
	return 100 * float64(right) / float64(len(labels))
}

// Train trains a peer on this member's pictures until its run is over, and says how well it reads held-out ones, in percent: after
// each so many steps, and at last once the last exchanges have brought the models together.
func (d *Data) Train(ctx context.Context, p *peer.Peer, model *nn.Model, each uint64) (seen plotter.XYs, err error) {
	gradient, now := d.Gradient(model), make(tensor.Vector, model.Layout().Len())
	for err == nil {
		if steps := p.Stats().Steps; steps%each == 0 {
			_, err = p.Snapshot(now, 0)
			seen = append(seen, plotter.XY{X: float64(steps), Y: d.Accuracy(model, now)})
		}
		if fault := p.Step(ctx, gradient); fault != nil {
			err = fault
		}
	}
	if !errors.Is(err, peer.ErrRunOver) {
		return seen, err
	}
	err = p.Close()
	_, fault := p.Snapshot(now, 0)
	return append(seen, plotter.XY{X: float64(p.Stats().Steps), Y: d.Accuracy(model, now)}), errors.Join(err, fault)
}
