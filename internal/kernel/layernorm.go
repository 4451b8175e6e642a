package kernel

// LayerNorm normalizes the rows of x, each of len(scale) values, and scales and
// shifts each column. It equals, for each row r,
//
//	for c := range row { dst[c] = float32(float32((row[c]-mean[r])*inverse[r])*scale[c]) + shift[c] }
//
// and sets mean[r] to the row's mean and inverse[r] to 1/√(variance + epsilon), with
// the variance of all values (their number, not one less, divides). Both come from
// sums in float64. dst may be x; every CPU gives the same bits.
func LayerNorm(dst, mean, inverse, x, scale, shift []float32, epsilon float32) {
	n := len(scale)
	x, shift = x[:len(dst)], shift[:n]
	for from, to := range pieces(len(dst), n) {
		first, rows := from/n, (to-from)/n
		layerNorm(dst[from:to], mean[first:first+rows], inverse[first:first+rows], x[from:to], scale, shift, epsilon, rows)
	}
}

// LayerNormGradient sets dst to the gradient over the rows x that LayerNorm took, from
// the gradient grad over those it gave and the mean and inverse that it set. It adds
// the gradients over scale and shift to scaleGrad and shiftGrad: sums over the rows as
// those of SumRows. dst may be grad or x; every CPU gives the same bits.
func LayerNormGradient(dst, scaleGrad, shiftGrad, grad, x, mean, inverse, scale []float32) {
	n := len(scale)
	grad, x, scaleGrad, shiftGrad = grad[:len(dst)], x[:len(dst)], scaleGrad[:n], shiftGrad[:n]
	for from, to := range pieces(len(dst), n) {
		first, rows := from/n, (to-from)/n
		m, s := mean[first:first+rows], inverse[first:first+rows]
		layerNormSums(scaleGrad, shiftGrad, m, s, grad[from:to], x[from:to], rows)
		layerNormGradient(dst[from:to], m, s, grad[from:to], x[from:to], scale, rows)
	}
}
