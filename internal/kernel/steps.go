package kernel

// The kernels of step codes: a value is a whole number of steps, an int8.

// Steps writes the number of steps of each value, and returns the sum of the
// squares of the numbers. It equals
//
//	for i := range x {
//		y := nearest(x[i] * inverse)
//		steps[i] = int8(y)
//		squares += y * y
//	}
//
// where no y may exceed 127 in magnitude. len(x) is at most Block.
func Steps(steps []byte, x []float32, inverse float32) (squares uint32) {
	return quantizeSteps(steps[:len(x)], x, inverse)
}

// Steps4 is Steps and then PackBits of 4 bits: no number may exceed 7 in magnitude.
// Code has PackedSize bytes.
func Steps4(code []byte, x []float32, inverse float32) (squares uint32) {
	return quantizeSteps4(code, x, inverse)
}

// Signs writes 1 for negative values, -0 and NaN with a sign included, and 0 for
// others:
//
//	for i := range x { signs[i] = byte(float32bits(x[i]) >> 31) }
//
// len(x) is at most Block.
func Signs(signs []byte, x []float32) { signsOf(signs[:len(x)], x) }

// SumAbs is the sum of the magnitudes of at most Block values, in float64 and in an
// order that is the same on all CPUs.
func SumAbs(x []float32) float64 { return sumAbs(x) }

// StepSquares equals
//
//	for _, y := range steps { squares += int8(y) * int8(y) }
//
// as a uint32. len(steps) is at most Block.
func StepSquares(steps []byte) uint32 { return stepSquares(steps) }

// StepsDecode equals
//
//	for i := range dst { dst[i] = step * float32(int8(steps[i])) }
//
// len(dst) is at most Block.
func StepsDecode(dst []float32, steps []byte, step float32) {
	stepsDecode(dst, steps[:len(dst)], step)
}

// StepsAdd equals
//
//	for i := range dst { dst[i] += float32(step * float32(int8(steps[i]))) }
//
// where the product is rounded before it is added. len(dst) is at most Block.
func StepsAdd(dst []float32, steps []byte, step float32) { stepsAdd(dst, steps[:len(dst)], step) }
