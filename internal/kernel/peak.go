package kernel

// MultiplyAddPeak multiplies and adds iterations times in each of as many
// accumulators as keep the core's multiply-add units busy, with nothing but
// registers, and returns how many floating-point operations that were: the rate
// that no matrix product of this CPU and level exceeds.
func MultiplyAddPeak(iterations int) (operations float64) {
	return multiplyAddPeak(max(iterations, 1))
}
