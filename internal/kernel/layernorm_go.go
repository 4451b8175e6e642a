package kernel

import "math"

func layerNormGo(dst, mean, inverse, x, scale, shift []float32, epsilon float32, rows int) {
	n := len(scale)
	shift = shift[:n]
	for r := range rows {
		to, from := dst[r*n:][:n], x[r*n:][:n]
		m, s := moments(from, epsilon)
		for c, v := range from {
			to[c] = float32(float32((v-m)*s)*scale[c]) + shift[c]
		}
		mean[r], inverse[r] = m, s
	}
}

func moments(row []float32, epsilon float32) (mean, inverse float32) {
	var sums, squares [places]float64
	for i, v := range row {
		sums[i%places] += float64(v)
		squares[i%places] += float64(float64(v) * float64(v))
	}
	n := float64(len(row))
	m := folded(&sums) / n
	variance := folded(&squares)/n - float64(m*m)
	if variance < 0 {
		variance = 0
	}
	return float32(m), float32(1 / math.Sqrt(variance+float64(epsilon)))
}

func layerNormGradientGo(dst, mean, inverse, grad, x, scale []float32, rows int) {
	n := len(scale)
	for r := range rows {
		to, g, from := dst[r*n:][:n], grad[r*n:][:n], x[r*n:][:n]
		m, s := mean[r], inverse[r]
		var sums, products [places]float64
		for i, v := range g {
			v *= scale[i]
			sums[i%places] += float64(v)
			products[i%places] += float64(float64(v) * float64((from[i]-m)*s))
		}
		a, b := float32(folded(&sums)/float64(n)), float32(folded(&products)/float64(n))
		for i, v := range g {
			rest := float32(v*scale[i]) - a
			to[i] = (rest - float32(float32((from[i]-m)*s)*b)) * s
		}
	}
}

func layerNormSumsGo(scaleGrad, shiftGrad, mean, inverse, grad, x []float32, rows int) {
	n := len(scaleGrad)
	for c := range n {
		var sum, product float64
		for r := range rows {
			g, h := grad[r*n+c], (x[r*n+c]-mean[r])*inverse[r]
			sum += float64(g)
			product += float64(float64(g) * float64(h))
		}
		shiftGrad[c] += float32(sum)
		scaleGrad[c] += float32(product)
	}
}
