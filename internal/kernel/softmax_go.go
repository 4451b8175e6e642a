package kernel

import "math"

// places are the sums that a sum has, whatever the width of a register: value i is
// added to the one at i modulo their number.
const places = 16

// folded adds the places up.
func folded(sum *[places]float64) float64 {
	for half := places / 2; half > 0; half /= 2 {
		for i := range half {
			sum[i] += sum[i+half]
		}
	}
	return sum[0]
}

// softmaxRowsGo works on the first kept values of the first row, and one more of each one
// that follows, up to n. Results are times scale. stats, if there are any, get the
// largest value and the sum of each row.
func softmaxRowsGo(x []float32, stats []float64, rows, n, kept int, factor, scale float32) {
	for r := range rows {
		row := x[r*n:][:n]
		most, sum := softmaxRow(row[:kept], factor, scale)
		clear(row[kept:])
		if len(stats) > 0 {
			stats[2*r], stats[2*r+1] = float64(most), sum
		}
		kept = min(kept+1, n)
	}
}

func softmaxRow(row []float32, factor, scale float32) (most float32, sum float64) {
	most = float32(math.Inf(-1))
	for _, v := range row {
		if v *= factor; v > most {
			most = v
		}
	}
	var sums [places]float64
	for i, v := range row {
		e := exponential(float32(v*factor)-most, expNegligible)
		row[i] = e
		sums[i%places] += float64(e)
	}
	sum = folded(&sums)
	scaleGo(row, float32(float64(scale)/sum))
	return most, sum
}

func softmaxRowsGradientGo(grad, p []float32, rows, n, kept int, factor float32) {
	for r := range rows {
		row, share := grad[r*n:][:n], p[r*n:][:kept]
		var sums [places]float64
		for i, v := range share {
			sums[i%places] += float64(float64(v) * float64(row[i]))
		}
		dot := float32(folded(&sums))
		for i, v := range share {
			row[i] = float32((row[i]-dot)*v) * factor
		}
		clear(row[kept:])
		kept = min(kept+1, n)
	}
}
