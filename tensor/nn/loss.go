package nn

import (
	"math"

	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// Loss is what training makes small: a mean over terms, of which each example has as
// many. A service may have one of its own.
type Loss interface {
	// Terms is how many terms, and with them targets, an example with outputs of this
	// shape has.
	Terms(out Shape) int
	// Gradient is the sum over the terms of some examples, and sets errors to its gradient
	// over their outputs, times scale. It may be called by several goroutines.
	Gradient(errors, outputs, targets tensor.Vector, scale float64) float64
}

// CrossEntropy is that of the softmax of each row of outputs, which has one value a
// class, in nats. The target of a row is the number of its class, a whole number from 0.
func CrossEntropy() Loss { return crossEntropy{} }

type crossEntropy struct{}

func (crossEntropy) Terms(out Shape) int { return out.Rows() }

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

// MeanSquare is the square of the difference of each output from its target.
func MeanSquare() Loss { return each{squared} }

// each is a loss of single outputs: its value and its slope.
type each struct {
	of func(output, target float64) (loss, slope float64)
}

func (each) Terms(out Shape) int { return out.Len() }

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

// Huber is half the square of the difference of an output from its target, and beyond delta
// a straight line, so that outliers pull no harder than that: torch.nn.HuberLoss. A delta
// that is not positive is torch's default, 1.
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

// BinaryCrossEntropy is that of the sigmoid of each output, in nats, as
// torch.nn.BCEWithLogitsLoss. The target of an output is its probability: 0 or 1 as a rule.
func BinaryCrossEntropy() Loss { return each{ofSigmoid} }

func ofSigmoid(output, target float64) (loss, slope float64) {
	rest := math.Log1p(math.Exp(-math.Abs(output))) // without overflow
	return max(output, 0) - float64(output*target) + rest, 1/(1+math.Exp(-output)) - target
}

// LogSumExp is log Σ exp(row), without overflow: the cross entropy of a row of outputs is
// LogSumExp(row) - row[label].
func LogSumExp(row tensor.Vector) float64 { return ops.LogSumExp(row) }

// Argmax is the place of the largest number, the first of equals: the class that a row of
// outputs speaks for.
func Argmax(row tensor.Vector) int { return ops.Argmax(row) }
