package kernel

import "math"

func quantizeStepsGo(steps []byte, x []float32, inverse float32) (squares uint32) {
	for i, v := range x {
		y := nearest(v * inverse)
		steps[i] = byte(y)
		squares += uint32(y * y)
	}
	return squares
}

func quantizeSteps4Go(code []byte, x []float32, inverse float32) (squares uint32) {
	var steps [Block]byte
	squares = quantizeStepsGo(steps[:len(x)], x, inverse)
	packBitsGo(code, steps[:len(x)], 4)
	return squares
}

func signsOfGo(signs []byte, x []float32) {
	for i, v := range x {
		signs[i] = byte(math.Float32bits(v) >> 31)
	}
}

// sumAbsGo keeps one sum for each place of a vector, as the others do.
func sumAbsGo(x []float32) float64 {
	var sums [lanes]float64
	for i, v := range x {
		sums[i%lanes] += math.Abs(float64(v))
	}
	for n := lanes / 2; n > 0; n /= 2 {
		for i := range n {
			sums[i] += sums[i+n]
		}
	}
	return sums[0]
}

func stepSquaresGo(steps []byte) (squares uint32) {
	for _, y := range steps {
		squares += uint32(int32(int8(y)) * int32(int8(y)))
	}
	return squares
}

func stepsDecodeGo(dst []float32, steps []byte, step float32) {
	for i, y := range steps[:len(dst)] {
		dst[i] = step * float32(int8(y))
	}
}

func stepsAddGo(dst []float32, steps []byte, step float32) {
	for i, y := range steps[:len(dst)] {
		dst[i] += float32(step * float32(int8(y)))
	}
}
