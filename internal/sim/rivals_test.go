package sim_test

import (
	"math/rand/v2"
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/tensor"
)

// allReduceByFormula trains one model by synchronous gradient descent with the mean gradient of
// all peers, which is what a ring AllReduce computes: the same batches, rates and
// momentum as the flock's. It returns the accuracy in percent, and the bytes that a
// peer would send: 2(n−1)/n values of 4 bytes for each parameter in each round.
func (d *digits) allReduceByFormula(t *testing.T, seed uint64, epochs int) (accuracy, perPeer float64) {
	t.Helper()
	p := d.pupils(t, seed, epochs)
	n := d.model.Layout().Len()
	x, grad, velocity := make(tensor.Vector, n), make(tensor.Vector, n), make(tensor.Vector, n)
	d.model.Init(seed, x)
	var round dataset.Batch
	for !p.over() {
		round.Resize(pupilPeers*pupilBatch, dataset.Inputs)
		for i, sampler := range p.samplers {
			_ = sampler.Next(&p.batch) // fails never
			copy(round.X[i*pupilBatch*dataset.Inputs:], p.batch.X)
			copy(round.Labels[i*pupilBatch:], p.batch.Labels)
		}
		d.model.Gradient(x, &round, grad)
		ratesAt(float64(p.made)/float64(p.due)).Delta(grad, velocity, grad, x)
		tensor.Add(x, grad)
		p.made += pupilPeers
		perPeer += 2 * float64(pupilPeers-1) / pupilPeers * 4 * float64(n)
	}
	return d.accuracy(x), perPeer
}

// overwrite trains a flock the naive way: after each step of an active peer, it and a
// passive one replace their models by the mean of their own and what the partner's
// comes to after a coding. No links, no loss: only the coding can do harm.
func (d *digits) overwrite(t *testing.T, seed uint64, epochs int, code func(tensor.Vector)) (accuracy float64) {
	t.Helper()
	p, rng := d.pupils(t, seed, epochs), rand.New(rand.NewPCG(seed, 3))
	n := d.model.Layout().Len()
	models := make([]tensor.Vector, pupilPeers)
	for i := range models {
		models[i] = make(tensor.Vector, n)
		d.model.Init(seed, models[i])
	}
	delta, a, b := make(tensor.Vector, n), make(tensor.Vector, n), make(tensor.Vector, n)
	for round := 0; !p.over(); round++ {
		for i, x := range models {
			p.Step(i, round, x, delta)
			tensor.Add(x, delta)
			if i%2 == 1 {
				continue
			}
			partner := models[2*rng.IntN(pupilPeers/2)+1]
			copy(a, x)
			copy(b, partner)
			code(a)
			code(b)
			tensor.ScaledDifference(b, 0.5, b, x)
			tensor.Add(x, b)
			tensor.ScaledDifference(a, 0.5, a, partner)
			tensor.Add(partner, a)
		}
	}
	clear(delta)
	for _, x := range models {
		tensor.Axpy(delta, 1.0/pupilPeers, x)
	}
	return d.accuracy(delta)
}

// exactly codes nothing.
func exactly(tensor.Vector) {}

// absmax rounds to steps of which as many as b bits allow make the largest magnitude of
// a block.
func absmax(bits int) func(tensor.Vector) {
	const toInteger = 3 << 22 // adding it to a float32 leaves no fraction
	most := float32(int(1)<<(bits-1) - 1)
	return func(x tensor.Vector) {
		for len(x) > 0 {
			block := x[:min(len(x), coding.BlockLen)]
			x = x[len(block):]
			step := tensor.MaxAbs(block) / most
			if step == 0 {
				continue
			}
			for i, v := range block {
				block[i] = float32((float32(v/step)+toInteger)-toInteger) * step
			}
		}
	}
}
