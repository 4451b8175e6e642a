package nn

import (
	"math"

	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// Loss is the number that training minimizes: a mean over terms. Each example has the same number of terms. A service
// may have a Loss of its own.
type Loss interface {
	// Terms is how many terms, and so targets, an example with outputs of this shape has.
	Terms(out Shape) int
	// Takes tells whether targets for outputs of this shape, which may come from others, are such that Gradient takes them.
	Takes(out Shape, targets tensor.Vector) bool
	// Gradient returns the sum of the loss over the terms of some examples, and sets errors to the gradient of that
	// sum over the outputs, times scale. Several goroutines may call it.
	Gradient(errors, outputs, targets tensor.Vector, scale float64) float64
}

// CrossEntropy is the cross entropy, in nats, of the softmax of each row of outputs, which has a value for each
// class. The target of a row is the number of its class, from 0; any other is an error of the program: Gradient panics.
func CrossEntropy() Loss { return crossEntropy{} }

type crossEntropy struct{}

func (crossEntropy) Terms(out Shape) int { return out.Rows() }

func (crossEntropy) Takes(out Shape, targets tensor.Vector) bool {
	for _, t := range targets {
		if !(t >= 0 && t < float32(out.Width())) || float32(int(t)) != t {
			return false
		}
	}
	return true
}

func (crossEntropy) Gradient(errors, outputs, targets tensor.Vector, scale float64) float64 {
	return ops.SoftmaxCrossEntropy(errors, outputs, targets, scale)
}

// Labels appends the numbers of classes to dst, as CrossEntropy takes them.
func Labels[T ~uint8 | ~int | ~int32 | ~int64](dst tensor.Vector, classes []T) tensor.Vector {
	for _, c := range classes {
		dst = append(dst, float32(c))
	}
	return dst
}

// MeanSquare is the mean squared difference between outputs and targets.
func MeanSquare() Loss { return each{squared} }

// each is a loss with a term for each output: its function returns the value and the derivative.
type each struct {
	of func(output, target float64) (loss, slope float64)
}

func (each) Terms(out Shape) int { return out.Len() }

func (each) Takes(_ Shape, targets tensor.Vector) bool { return tensor.Finite(targets) }

func (l each) Gradient(errors, outputs, targets tensor.Vector, scale float64) float64 {
	sum := 0.0
	for i, v := range outputs {
		loss, slope := l.of(float64(v), float64(targets[i]))
		sum += loss
		errors[i] = float32(slope * scale)
	}
	return sum
}

func squared(output, target float64) (loss, slope float64) {
	d := output - target
	return d * d, 2 * d
}

// Huber is half the squared difference between output and target; beyond delta it is a straight line, which limits
// the effect of outliers: torch.nn.HuberLoss. A delta that is not positive means torch's default, 1.
func Huber(delta float64) Loss {
	if !(delta > 0) {
		delta = 1
	}
	return each{func(output, target float64) (loss, slope float64) {
		d := output - target
		if math.Abs(d) > delta {
			return delta * (math.Abs(d) - delta/2), math.Copysign(delta, d)
		}
		return d * d / 2, d
	}}
}

// BinaryCrossEntropy is the cross entropy, in nats, of the sigmoid of each output, as torch.nn.BCEWithLogitsLoss. The
// target of an output is a probability, usually 0 or 1.
func BinaryCrossEntropy() Loss { return each{ofSigmoid} }

func ofSigmoid(output, target float64) (loss, slope float64) {
	rest := math.Log1p(math.Exp(-math.Abs(output))) // without overflow
	return max(output, 0) - float64(output*target) + rest, 1/(1+math.Exp(-output)) - target
}

// LogSumExp is log Σ exp(row), without overflow: the cross entropy of a row of outputs is
// LogSumExp(row) - row[label].
func LogSumExp(row tensor.Vector) float64 { return ops.LogSumExp(row) }

// Argmax is the index of the largest number, the first of several: the class that a row of outputs predicts.
func Argmax(row tensor.Vector) int { return ops.Argmax(row) }
