package kernel

// The functions below have the same bits on every CPU. Of two slices, both may be the
// same. NaN stays, and large values of either sign have the limit of the function,
// but for SiLU, which is NaN for negative infinity.

// GELU sets dst to x·Φ(x), where Φ is the normal distribution, within 3e-7 of
// max(1, |x|).
func GELU(dst, x []float32) { gelu(dst, x[:len(dst)]) }

// GELUGradient multiplies grad by the derivative of GELU at x, Φ(x) + x·φ(x), within
// 5e-7.
func GELUGradient(grad, x []float32) { geluGradient(grad, x[:len(grad)]) }

// AddRowsGELU equals AddRows, then GELU of x in place, and sets slope to the derivative of
// GELU that GELUGradient multiplies by.
func AddRowsGELU(x, slope, row []float32) {
	slope = slope[:len(x)]
	for from, to := range pieces(len(x), len(row)) {
		addRowsGELU(x[from:to], slope[from:to], row, (to-from)/len(row))
	}
}

// SiLU sets dst to x/(1+exp(-x)).
func SiLU(dst, x []float32) { silu(dst, x[:len(dst)]) }

// SiLUGradient multiplies grad by the derivative of SiLU at x.
func SiLUGradient(grad, x []float32) { siluGradient(grad, x[:len(grad)]) }

// Sigmoid sets dst to 1/(1+exp(-x)).
func Sigmoid(dst, x []float32) { sigmoid(dst, x[:len(dst)]) }

// SigmoidGradient equals
//
//	for i := range grad { grad[i] *= out[i] * (1 - out[i]) }
//
// which is the way back of what Sigmoid gave.
func SigmoidGradient(grad, out []float32) { sigmoidGradient(grad, out[:len(grad)]) }

// Tanh sets dst to tanh(x).
func Tanh(dst, x []float32) { tanh(dst, x[:len(dst)]) }

// TanhGradient equals
//
//	for i := range grad { grad[i] *= 1 - float32(out[i]*out[i]) }
//
// which is the way back of what Tanh gave.
func TanhGradient(grad, out []float32) { tanhGradient(grad, out[:len(grad)]) }
