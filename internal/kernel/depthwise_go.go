package kernel

func depthwiseGo(y, x, w []float32, g grid) {
	n, line := g.channels, g.line/floatBytes
	row := 0
	for range g.rows {
		for p := range g.cols {
			to := y[p*n:][:n]
			clear(to)
			for tap := range depthTaps {
				at := row + p*g.xPixel/floatBytes + tap/windowLines*line + tap%windowLines*n
				from, weights := x[at:][:n], w[tap*n:][:n]
				for c, v := range from {
					to[c] += float32(v * weights[c])
				}
			}
		}
		row += n + g.xNext/floatBytes
		y = y[min(len(y), n+g.yNext/floatBytes):]
	}
}

func depthwiseGradientGo(w, x, y []float32, g grid) {
	n, line := g.channels, g.line/floatBytes
	row := 0
	for range g.rows {
		for tap := range depthTaps {
			for c := range n {
				at, sum := row+tap/windowLines*line+tap%windowLines*n+c, float32(0)
				for p := range g.cols {
					sum += float32(x[at+p*g.xPixel/floatBytes] * y[p*n+c])
				}
				w[tap*n+c] += sum
			}
		}
		row += n + g.xNext/floatBytes
		y = y[min(len(y), n+g.yNext/floatBytes):]
	}
}
