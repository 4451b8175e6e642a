package nets

import (
	"math"
	"math/rand/v2"

	"github.com/seed-97356399/murmuration/tensor"
)

// param is one range of parameters and where its training starts.
type param struct {
	tensor.Spec
	start start
}

// start is a rule for the values that training starts from: even in
// ±sqrt(variance/fan), or all of them the same where fan is zero.
type start struct {
	variance float64
	fan      int
	fill     float32
}

// Weights before a rectifier have twice the variance (He et al., 2015): it cuts one
// half off.
const (
	rectified = 6.0
	linear    = 3.0
)

func even(variance float64, fan int) start { return start{variance: variance, fan: fan} }

func constant(fill float32) start { return start{fill: fill} }

// set fills w. Nothing but integers, one square root and one product goes into a
// weight, so no platform rounds it differently.
func (s start) set(w tensor.Vector, rng *rand.Rand) {
	if s.fan == 0 {
		for i := range w {
			w[i] = s.fill
		}
		return
	}
	const half = 1 << 23
	unit := float32(math.Sqrt(s.variance/float64(s.fan))) / half
	for i := range w {
		w[i] = unit * float32(int32(rng.Uint32()>>8)-half)
	}
}
