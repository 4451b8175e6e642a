package tensor

import "github.com/seed-97356399/murmuration/internal/kernel"

// MultiplyAddPeak runs a loop that keeps the multiply-add units of one core busy using only registers, and returns
// the number of floating-point operations. Its time, compared with that of products, shows which share of the core's
// peak they reach. 1,000,000 iterations take some milliseconds.
func MultiplyAddPeak(iterations int) (operations float64) {
	return kernel.MultiplyAddPeak(iterations)
}
