package ops

import (
	"math"

	"github.com/seed-97356399/murmuration/tensor"
)

// GELU sets out to x·Φ(x), where Φ is the distribution of a normal value (Hendrycks and
// Gimpel 2016). out may be x.
func GELU(out, x tensor.Vector) {
	wantLen("GELU", len(out), len(x))
	for i, v := range x {
		out[i] = float32(float64(v) * phi(float64(v)))
	}
}

// GELUGradient multiplies errors by the slope of GELU at x.
func GELUGradient(errors, x tensor.Vector) {
	wantLen("GELUGradient", len(errors), len(x))
	for i, v := range x {
		density := math.Exp(-float64(v)*float64(v)/2) / math.Sqrt(2*math.Pi)
		errors[i] *= float32(phi(float64(v)) + float64(v)*density)
	}
}

func phi(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }

// Sigmoid sets out, which may be x, to 1/(1+exp(-x)).
func Sigmoid(out, x tensor.Vector) {
	wantLen("Sigmoid", len(out), len(x))
	for i, v := range x {
		out[i] = float32(1 / (1 + math.Exp(-float64(v))))
	}
}

// SigmoidGradient multiplies errors by the slope of Sigmoid where it gave out.
func SigmoidGradient(errors, out tensor.Vector) {
	wantLen("SigmoidGradient", len(errors), len(out))
	for i, v := range out {
		errors[i] *= v * (1 - v)
	}
}

// Tanh sets out, which may be x, to the hyperbolic tangent of x.
func Tanh(out, x tensor.Vector) {
	wantLen("Tanh", len(out), len(x))
	for i, v := range x {
		out[i] = float32(math.Tanh(float64(v)))
	}
}

// TanhGradient multiplies errors by the slope of Tanh where it gave out.
func TanhGradient(errors, out tensor.Vector) {
	wantLen("TanhGradient", len(errors), len(out))
	for i, v := range out {
		errors[i] *= 1 - v*v
	}
}

// SiLU sets out to x·Sigmoid(x). out may be x.
func SiLU(out, x tensor.Vector) {
	wantLen("SiLU", len(out), len(x))
	for i, v := range x {
		out[i] = float32(float64(v) / (1 + math.Exp(-float64(v))))
	}
}

// SiLUGradient multiplies errors by the slope of SiLU at x.
func SiLUGradient(errors, x tensor.Vector) {
	wantLen("SiLUGradient", len(errors), len(x))
	for i, v := range x {
		s := 1 / (1 + math.Exp(-float64(v)))
		errors[i] *= float32(s * (1 + float64(v)*(1-s)))
	}
}
