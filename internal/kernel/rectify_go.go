package kernel

func rectifyGo(dst []float32) {
	for i, v := range dst {
		if v < 0 {
			dst[i] = 0
		}
	}
}

func rectifyGradientGo(grad, out []float32) {
	out = out[:len(grad)]
	for i, v := range out {
		if v <= 0 {
			grad[i] = 0
		}
	}
}
