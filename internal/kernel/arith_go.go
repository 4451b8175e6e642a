package kernel

// The loops below are bound by one load or store per element, so unrolling
// them gains nothing; the reslices let the compiler drop the bounds checks.

func addGo(dst, x []float32) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] += v
	}
}

func subGo(dst, x []float32) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] -= v
	}
}

func mulGo(dst, x []float32) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] *= v
	}
}

func axpyGo(dst []float32, a float32, x []float32) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] += float32(a * v)
	}
}

func scaleGo(dst []float32, a float32) {
	for i := range dst {
		dst[i] *= a
	}
}

func scaledDifferenceGo(dst []float32, w float32, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i, v := range x {
		dst[i] = w * (v - y[i])
	}
}
