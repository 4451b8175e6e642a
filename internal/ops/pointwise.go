package ops

import (
	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// GELU sets out to x·Φ(x), where Φ is the distribution function of a normal value (Hendrycks and Gimpel 2016). out
// may be x.
func GELU(out, x tensor.Vector) {
	wantLen("GELU", len(out), len(x))
	kernel.GELU(out, x)
}

// GELUGradient multiplies errors by the derivative of GELU at x.
func GELUGradient(errors, x tensor.Vector) {
	wantLen("GELUGradient", len(errors), len(x))
	kernel.GELUGradient(errors, x)
}

// AddRowsGELU adds row to each row of x, sets x to GELU of the sums, and slopes to the derivatives of GELU there.
func AddRowsGELU(x, slopes, row tensor.Vector) {
	pictures("AddRowsGELU", len(x), len(row))
	wantLen("AddRowsGELU", len(slopes), len(x))
	kernel.AddRowsGELU(x, slopes, row)
}

// Multiply multiplies errors by slopes.
func Multiply(errors, slopes tensor.Vector) {
	wantLen("Multiply", len(slopes), len(errors))
	kernel.Mul(errors, slopes)
}

// Sigmoid sets out, which may be x, to 1/(1+exp(-x)).
func Sigmoid(out, x tensor.Vector) {
	wantLen("Sigmoid", len(out), len(x))
	kernel.Sigmoid(out, x)
}

// SigmoidGradient multiplies errors by the derivative of Sigmoid, whose output was out.
func SigmoidGradient(errors, out tensor.Vector) {
	wantLen("SigmoidGradient", len(errors), len(out))
	kernel.SigmoidGradient(errors, out)
}

// Tanh sets out, which may be x, to the hyperbolic tangent of x.
func Tanh(out, x tensor.Vector) {
	wantLen("Tanh", len(out), len(x))
	kernel.Tanh(out, x)
}

// TanhGradient multiplies errors by the derivative of Tanh, whose output was out.
func TanhGradient(errors, out tensor.Vector) {
	wantLen("TanhGradient", len(errors), len(out))
	kernel.TanhGradient(errors, out)
}

// SiLU sets out to x·Sigmoid(x). out may be x.
func SiLU(out, x tensor.Vector) {
	wantLen("SiLU", len(out), len(x))
	kernel.SiLU(out, x)
}

// SiLUGradient multiplies errors by the derivative of SiLU at x.
func SiLUGradient(errors, x tensor.Vector) {
	wantLen("SiLUGradient", len(errors), len(x))
	kernel.SiLUGradient(errors, x)
}
