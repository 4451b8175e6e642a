package kernel

func convolve16Go(y, x, w []float32, c windows) {
	xAt, yAt := 0, 0
	for range c.rows {
		for range c.cols {
			var sum [16]float32
			at, weights := xAt, w
			for range windowLines {
				for _, v := range x[at : at+c.taps] {
					for j, a := range (*[16]float32)(weights) {
						sum[j] += float32(v * a)
					}
					weights = weights[16:]
				}
				at += c.taps + c.lineNext/floatBytes
			}
			copy(y[yAt:], sum[:])
			xAt, yAt = xAt+c.xPixel/floatBytes, yAt+c.yPixel/floatBytes
		}
		xAt, yAt = xAt+c.xNext/floatBytes, yAt+c.yNext/floatBytes
	}
}

func convolve8Go(y, x, w []float32, c windows) {
	xAt, yAt := 0, 0
	for range c.rows {
		for range c.cols {
			var sum [8]float32
			at, weights := xAt, w
			for range windowLines {
				for _, v := range x[at : at+c.taps] {
					for j, a := range (*[8]float32)(weights) {
						sum[j] += float32(v * a)
					}
					weights = weights[8:]
				}
				at += c.taps + c.lineNext/floatBytes
			}
			copy(y[yAt:], sum[:])
			xAt, yAt = xAt+c.xPixel/floatBytes, yAt+c.yPixel/floatBytes
		}
		xAt, yAt = xAt+c.xNext/floatBytes, yAt+c.yNext/floatBytes
	}
}

func convolveGradient16Go(w, x, y []float32, c windows) {
	for tap := range c.taps {
		var sum [16]float32
		xAt, yAt := tap, 0
		for range c.rows {
			for range c.cols {
				v := x[xAt]
				for j, e := range (*[16]float32)(y[yAt:]) {
					sum[j] += float32(v * e)
				}
				xAt, yAt = xAt+c.xPixel/floatBytes, yAt+c.yPixel/floatBytes
			}
			xAt, yAt = xAt+c.xNext/floatBytes, yAt+c.yNext/floatBytes
		}
		for j, v := range sum {
			w[tap*16+j] += v
		}
	}
}

func convolveGradient8Go(w, x, y []float32, c windows) {
	for tap := range c.taps {
		var sum [8]float32
		xAt, yAt := tap, 0
		for range c.rows {
			for range c.cols {
				v := x[xAt]
				for j, e := range (*[8]float32)(y[yAt:]) {
					sum[j] += float32(v * e)
				}
				xAt, yAt = xAt+c.xPixel/floatBytes, yAt+c.yPixel/floatBytes
			}
			xAt, yAt = xAt+c.xNext/floatBytes, yAt+c.yNext/floatBytes
		}
		for j, v := range sum {
			w[tap*8+j] += v
		}
	}
}
