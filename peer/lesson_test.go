package peer_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// The lesson of the tests in which flocks are disturbed: a softmax regression on
// points around ten centres that overlap. Every half of the flock sees mostly the
// classes of one half, so that models drift apart where the halves do not talk.
const (
	lessonInputs  = 16
	lessonClasses = 10
	lessonBatch   = 8
	lessonSkew    = 0.8 // share of a peer's points that are of its half's classes
)

var long = flag.Bool("long", false, "let flocks that are disturbed train for as long, and be as large, as docs/TESTING.md says")

func newLesson() *tensor.Params {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "weights", Shape: []int{lessonClasses, lessonInputs + 1}})
	if err != nil {
		panic(err) // the spec is constant
	}
	return tensor.NewParams(layout)
}

// lessonPoint draws a point of a class; the last input is constant.
func lessonPoint(random *rand.Rand, class int, point []float32) {
	centre := rand.New(rand.NewPCG(5, uint64(class)))
	for k := range lessonInputs {
		point[k] = float32(0.8*centre.NormFloat64() + random.NormFloat64())
	}
	point[lessonInputs] = 1
}

// probabilities are what a model makes of a point.
func probabilities(x tensor.Vector, point []float32) (p [lessonClasses]float64) {
	var sum float64
	for c := range p {
		for k, v := range point {
			p[c] += float64(x[c*len(point)+k]) * float64(v)
		}
	}
	for c := range p {
		p[c] = math.Exp(min(p[c], 50))
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
	return p
}

// lesson makes the gradient of the lesson, a step of which takes that long. half tells
// which half of the flock a peer is in. Trainers call the returned function at once,
// each with its own i below peers.
func lesson(peers int, pace time.Duration, half func(i int) int) peertest.Gradient {
	random := make([]*rand.Rand, peers)
	for i := range random {
		random[i] = rand.New(rand.NewPCG(3, uint64(i)))
	}
	return atPace(pace, func(i int, x, grad tensor.Vector) (peer.Result, error) {
		var loss float64
		point := make([]float32, lessonInputs+1)
		for range lessonBatch {
			class := random[i].IntN(lessonClasses)
			if random[i].Float64() < lessonSkew {
				class = class/2 + half(i)*lessonClasses/2
			}
			lessonPoint(random[i], class, point)
			p := probabilities(x, point)
			loss -= math.Log(max(p[class], 1e-12)) / lessonBatch
			p[class]--
			for c := range p {
				for k, v := range point {
					grad[c*len(point)+k] += float32(p[c]) * v / lessonBatch
				}
			}
		}
		return peer.Result{Loss: loss, Samples: lessonBatch}, nil
	})
}

// accuracy is the share of held-out points that a model tells right, in points.
func accuracy(x tensor.Vector) float64 {
	const held = 4000
	random, point, right := rand.New(rand.NewPCG(9, 9)), make([]float32, lessonInputs+1), 0
	for i := range held {
		lessonPoint(random, i%lessonClasses, point)
		best, p := 0, probabilities(x, point)
		for c := range p {
			if p[c] > p[best] {
				best = c
			}
		}
		if best == i%lessonClasses {
			right++
		}
	}
	return 100 * float64(right) / held
}

// accuracies is the mean of what models reach.
func accuracies(models []tensor.Vector) (mean float64) {
	for _, x := range models {
		mean += accuracy(x) / float64(len(models))
	}
	return mean
}
