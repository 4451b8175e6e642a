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

func relu6Go(dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		if v < 0 {
			v = 0
		} else if v > 6 {
			v = 6
		}
		dst[i] = v
	}
}

func relu6GradientGo(grad, out []float32) {
	out = out[:len(grad)]
	for i, v := range out {
		if v <= 0 || v >= 6 {
			grad[i] = 0
		}
	}
}
