package replica

import (
	"sync"
	"sync/atomic"

	"github.com/seed-97356399/murmuration/tensor"
)

// rounding is what the codes of gradients and sums that this side has sent have lost, in units of
// the sum, by value. The next gradient carries it (error feedback, Seide et al., 2014; Karimireddy
// et al., 2019), so that what a code is too coarse for adds up until it is sent. The parts of a slice
// are guarded by its lock.
type rounding struct {
	any  atomic.Bool // something may have been lost
	made func() tensor.Vector
}

func newRounding(values int) *rounding {
	return &rounding{made: sync.OnceValue(func() tensor.Vector { return make(tensor.Vector, values) })}
}

// note notes what has become of values, from the offset on, by their code. Those of one gradient that are
// sent for the second time replace what was noted for the first.
func (l *rounding) note(offset int, values, coded tensor.Vector, scale float32, again bool) {
	lost := l.made()[offset:][:len(values)]
	l.any.Store(true)
	if again {
		clear(lost)
	}
	for i, v := range values {
		lost[i] += scale * (v - coded[i])
	}
}

// carry adds what was lost to a range of the next gradient, over so many samples.
func (l *rounding) carry(gradient tensor.Vector, from, to int, samples float64) {
	if l.any.Load() {
		lost := l.made()[from:to]
		tensor.Axpy(gradient[from:to], float32(1/samples), lost)
		clear(lost)
	}
}

// forget is for an attempt that breaks off, of which the next one's codes lose it again, and for another
// model. In is the range in question of a vector.
func (l *rounding) forget(in func(tensor.Vector) tensor.Vector) {
	if l.any.Load() {
		clear(in(l.made()))
	}
}
