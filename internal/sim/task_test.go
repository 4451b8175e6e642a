package sim_test

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/seed-97356399/murmuration/tensor"
)

// The task that flocks learn in these tests: points lie around the centres of
// clusters, several of which are one class, so that no straight line parts the
// classes. A network with one hidden layer learns to tell them apart.
const (
	classes    = 10
	perClass   = 2 // clusters of a class
	dimensions = 12
	hidden     = 16
	weights    = hidden*(dimensions+1) + classes*(hidden+1) // rows, each with its bias last
	batch      = 16
	rate       = 0.2
)

type point [dimensions]float32

// clusters are the centres.
type clusters [classes][perClass]point

func newClusters(rng *rand.Rand) *clusters {
	var c clusters
	for k := range c {
		for m := range c[k] {
			for j := range c[k][m] {
				c[k][m][j] = float32(rng.NormFloat64())
			}
		}
	}
	return &c
}

// draw fills x with a point and returns its class.
func (c *clusters) draw(rng *rand.Rand, x *point) (class int) {
	class = rng.IntN(classes)
	centre := &c[class][rng.IntN(perClass)]
	for j := range x {
		x[j] = centre[j] + float32(rng.NormFloat64()*0.7)
	}
	return class
}

// initialise fills a model with what all peers begin with.
func initialise(_ *rand.Rand, _ int, model tensor.Vector) {
	rng := rand.New(rand.NewPCG(70, 0))
	for i := range model {
		model[i] = float32(rng.NormFloat64() / math.Sqrt(dimensions))
	}
}

// network is a model's answer to a point.
type network struct {
	hidden [hidden]float32
	out    [classes]float32
}

// forward computes the hidden units and the scores of the classes.
func (n *network) forward(model tensor.Vector, x *point) {
	for i := range n.hidden {
		n.hidden[i] = max(0, affine(model[i*(dimensions+1):], x[:]))
	}
	for k := range n.out {
		n.out[k] = affine(model[hidden*(dimensions+1)+k*(hidden+1):], n.hidden[:])
	}
}

// affine is the product of a row with x, and the row's bias.
func affine(row tensor.Vector, x []float32) float32 {
	sum := row[len(x)]
	for j, v := range x {
		sum += float32(row[j] * v)
	}
	return sum
}

// backward adds to delta a step against the gradient of the cross-entropy.
func (n *network) backward(model, delta tensor.Vector, x *point, class int, step float32) {
	var back [hidden]float32
	errs := softmax(n.out)
	errs[class]--
	for k, e := range errs {
		at := hidden*(dimensions+1) + k*(hidden+1)
		for i, h := range n.hidden {
			back[i] += float32(e * model[at+i])
			delta[at+i] -= float32(step * e * h)
		}
		delta[at+hidden] -= float32(step * e)
	}
	for i, e := range back {
		if n.hidden[i] == 0 {
			continue
		}
		row := delta[i*(dimensions+1):]
		for j, v := range x {
			row[j] -= float32(step * e * v)
		}
		row[dimensions] -= float32(step * e)
	}
}

func softmax(s [classes]float32) (p [classes]float32) {
	top, sum := s[0], float32(0)
	for _, v := range s {
		top = max(top, v)
	}
	for k, v := range s {
		p[k] = float32(math.Exp(float64(v - top)))
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
	return p
}

// accuracy is the share of points that a model puts into their classes, in percent;
// the points are the same each time.
func (c *clusters) accuracy(model tensor.Vector) float64 {
	const points = 4000
	rng := rand.New(rand.NewPCG(77, 0))
	right := 0
	var x point
	var n network
	for range points {
		class := c.draw(rng, &x)
		n.forward(model, &x)
		best := 0
		for k, s := range n.out {
			if s > n.out[best] {
				best = k
			}
		}
		if best == class {
			right++
		}
	}
	return 100 * float64(right) / points
}

// learners train honest peers on points of their own; the others do nothing.
type learners struct {
	task   *clusters
	rngs   []*rand.Rand // one a peer
	honest func(peer int) bool
}

func newLearners(task *clusters, seed uint64, peers int, honest func(int) bool) *learners {
	l := &learners{task: task, honest: honest}
	for i := range peers {
		l.rngs = append(l.rngs, rand.New(rand.NewPCG(seed, uint64(i))))
	}
	return l
}

func (l *learners) Duration(peer, _, _ int) time.Duration {
	return time.Duration(8+peer%5) * time.Millisecond
}

// Step is a step of stochastic gradient descent from the snapshot.
func (l *learners) Step(peer, _ int, model, delta []float32) {
	clear(delta)
	if !l.honest(peer) {
		return
	}
	var x point
	var n network
	for range batch {
		class := l.task.draw(l.rngs[peer], &x)
		n.forward(model, &x)
		n.backward(model, delta, &x, class, rate/batch)
	}
}
