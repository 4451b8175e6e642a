package ops

import (
	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

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

// The functions of a value that layers have. Each sets out to its value at x, and may overwrite x. Its gradient multiplies
// errors by the derivative: at the output for ReLU6, Sigmoid and Tanh, and at x for SiLU, which is x·Sigmoid(x), and for GELU, which is
// x·Φ(x), where Φ is the distribution function of a normal value (Hendrycks and Gimpel 2016).
var (
	GELU            = checked("GELU", kernel.GELU)
	GELUGradient    = checked("GELUGradient", kernel.GELUGradient)
	Sigmoid         = checked("Sigmoid", kernel.Sigmoid)
	SigmoidGradient = checked("SigmoidGradient", kernel.SigmoidGradient)
	Tanh            = checked("Tanh", kernel.Tanh)
	TanhGradient    = checked("TanhGradient", kernel.TanhGradient)
	SiLU            = checked("SiLU", kernel.SiLU)
	SiLUGradient    = checked("SiLUGradient", kernel.SiLUGradient)
	ReLU6           = checked("ReLU6", kernel.ReLU6)
	ReLU6Gradient   = checked("ReLU6Gradient", kernel.ReLU6Gradient)
)

// checked is a function of two vectors of one length, which it checks.
func checked(name string, f func(a, b []float32)) func(a, b tensor.Vector) {
	return func(a, b tensor.Vector) {
		wantLen(name, len(a), len(b))
		f(a, b)
	}
}
