package tensor

import "github.com/seed-97356399/murmuration/internal/kernel"

// MultiplyAddPeak keeps one core's multiply-add units busy with nothing but
// registers for so many iterations of a loop, and returns how many
// floating-point operations that were. Timed beside products, it tells which
// share of the core's own peak they reach. 1,000,000 iterations take some
// milliseconds.
func MultiplyAddPeak(iterations int) (operations float64) {
	return kernel.MultiplyAddPeak(iterations)
}
