package hostiletest_test

import (
	"math/rand/v2"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// What the flocks learn: to tell points around ten centres that overlap. Each half of the peers sees mostly
// the classes of one half, so that models differ as those of honest peers do.
const (
	inputs  = 17 // the last is constant
	classes = 10
	batch   = 8
	skew    = 0.8 // share of a peer's points that are of its half's classes
)

// pupil is the model that learns.
var pupil = func() *nn.Model {
	model, err := nn.Sequential(nn.LinearNoBias(inputs, classes)).Build(inputs)
	if err != nil {
		panic(err) // the layers are constant
	}
	return model
}()

func newModel() *tensor.Params { return pupil.Init(1) }

// learner is how peers learn the lesson.
func learner(c *peer.Config) {
	c.Training.Exchange.Pace.Every = 1
	c.Training.Schedule = optim.Schedule{Rate: 0.2}
	c.Training.Optimizer = &optim.SGD{}
}

// centres are where the points of each class lie around.
var centres = func() (all [classes][inputs]float32) {
	random := rand.New(rand.NewPCG(5, 0))
	for class := range all {
		for k := range all[class] {
			all[class][k] = float32(0.8 * random.NormFloat64())
		}
	}
	return all
}()

// draw makes a point of a class.
func draw(random *rand.Rand, class int, point tensor.Vector) {
	for k := range point {
		point[k] = centres[class][k] + float32(random.NormFloat64())
	}
	point[inputs-1] = 1
}

// lesson makes the gradient of the lesson for so many peers, a step of which takes that long.
func lesson(peers int, pace time.Duration) peertest.Gradient {
	type desk struct {
		random  *rand.Rand
		trainer *nn.Trainer
		points  tensor.Vector
		labels  []int
	}
	desks := make([]desk, peers)
	for i := range desks {
		desks[i] = desk{rand.New(rand.NewPCG(3, uint64(i))), pupil.Trainer(batch, nn.CrossEntropy()), make(tensor.Vector, batch*inputs), make([]int, batch)}
	}
	return func(i int, x, grad tensor.Vector) (peer.Result, error) {
		time.Sleep(pace)
		d := desks[i]
		for n := range d.labels {
			class := d.random.IntN(classes)
			if d.random.Float64() < skew {
				class = class/2 + i%2*classes/2
			}
			d.labels[n] = class
			draw(d.random, class, d.points[n*inputs:][:inputs])
		}
		return peer.Result{Loss: d.trainer.Gradient(x, grad, d.points, nn.Labels(nil, d.labels)), Samples: batch}, nil
	}
}

// accuracy is the share of held-out points that a model tells right, in percent.
func accuracy(x tensor.Vector) float64 {
	const held = 4000
	random, points, out := rand.New(rand.NewPCG(9, 9)), make(tensor.Vector, held*inputs), make(tensor.Vector, held*classes)
	for n := range held {
		draw(random, n%classes, points[n*inputs:][:inputs])
	}
	pupil.Predict(x, out, points)
	right := 0
	for n := range held {
		if nn.Argmax(out[n*classes:][:classes]) == n%classes {
			right++
		}
	}
	return 100 * float64(right) / held
}
