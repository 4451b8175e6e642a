package replica

import (
	"math"

	"github.com/seed-97356399/murmuration/tensor"
)

const (
	// driftSample is the most values of a slice that are kept to see how far it has
	// moved.
	driftSample = 256
	// boundDrift is how many times as far as a slice has moved by itself its
	// counterpart may be away in any case: two models that have moved as far each,
	// in opposite directions, are that far apart.
	boundDrift = 2
)

// drift is every so many values of a slice as they were after its last exchange:
// what it takes to estimate how far local steps have moved it since.
type drift []float32

// newDrift makes a drift of a slice as it is.
func newDrift(own tensor.Vector) drift {
	d := make(drift, min(len(own), driftSample))
	d.mark(own)
	return d
}

// at is where in a slice the i-th of the values kept is: somewhere in the i-th of
// equal parts, each time a little farther on, or all might be of one column of a
// matrix.
func (d drift) at(i int, own tensor.Vector) int {
	from, to := i*len(own)/len(d), (i+1)*len(own)/len(d)
	return from + i%(to-from)
}

// mark makes the slice as it is the one from which it moves.
func (d drift) mark(own tensor.Vector) {
	for i := range d {
		d[i] = own[d.at(i, own)]
	}
}

// moved estimates the norm of the slice's movement since mark. It is exact for
// slices of up to driftSample values.
func (d drift) moved(own tensor.Vector) float64 {
	sum := 0.0
	for i, was := range d {
		way := float64(own[d.at(i, own)]) - float64(was)
		sum += way * way
	}
	return math.Sqrt(sum * float64(len(own)) / float64(len(d)))
}
