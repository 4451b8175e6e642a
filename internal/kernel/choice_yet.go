// Until vector variants are generated, the functions that choose among them have the twins alone.

package kernel

func exp(dst, x []float32)              { expGo(dst, x) }
func gelu(dst, x []float32)             { geluGo(dst, x) }
func geluGradient(grad, x []float32)    { geluGradientGo(grad, x) }
func silu(dst, x []float32)             { siluGo(dst, x) }
func siluGradient(grad, x []float32)    { siluGradientGo(grad, x) }
func sigmoid(dst, x []float32)          { sigmoidGo(dst, x) }
func sigmoidGradient(grad, x []float32) { sigmoidGradientGo(grad, x) }
func tanh(dst, x []float32)             { tanhGo(dst, x) }
func tanhGradient(grad, x []float32)    { tanhGradientGo(grad, x) }
func softmaxRows(x []float32, stats []float64, n, kept, grow int, factor, scale float32, rows int) {
	softmaxRowsGo(x, stats, n, kept, grow, factor, scale, rows)
}
func softmaxRowsGradient(grad, p []float32, n, kept, grow int, factor float32, rows int) {
	softmaxRowsGradientGo(grad, p, n, kept, grow, factor, rows)
}
func layerNorm(dst, mean, inverse, x, scale, shift []float32, epsilon float32, rows int) {
	layerNormGo(dst, mean, inverse, x, scale, shift, epsilon, rows)
}
func layerNormGradient(dst, grad, x, mean, inverse, scale []float32, rows int) {
	layerNormGradientGo(dst, grad, x, mean, inverse, scale, rows)
}
func layerNormSums(scaleGrad, shiftGrad, grad, x, mean, inverse []float32, rows int) {
	layerNormSumsGo(scaleGrad, shiftGrad, grad, x, mean, inverse, rows)
}
