package kernel

import "testing"

// variant is one implementation of every kernel. Each test runs on all of them.
type variant struct {
	name             string
	missing          bool // this CPU cannot run it
	add, sub, mul    func(dst, x []float32)
	axpy             func(dst []float32, a float32, x []float32)
	scale            func(dst []float32, a float32)
	scaledDifference func(dst []float32, w float32, x, y []float32)
	distance         func(x, y []float32) float64
	squares          func(x []float32) float64
	scaledDistance   func(dst []float32, w float32, x, y []float32) float64
	maxAbs           func(x []float32) float32
	finite           func(x []float32) bool
	bf16Encode       func(dst []byte, x []float32)
	bf16Decode       func(dst []float32, code []byte)
	fp16Decode       func(dst []float32, code []byte)
	bf16Finite       func(code []byte) bool
	float32Finite    func(code []byte) bool
	rectify          func(dst []float32)
	rectifyGradient  func(grad, out []float32)
	relu6            func(dst, x []float32)
	relu6Gradient    func(grad, out []float32)
	momentum         func(delta, velocity, grad, x []float32, c Momentum)
	nesterov         func(delta, velocity, grad, x []float32, c Momentum)
	adamW            func(delta, mean, square, grad, x []float32, c AdamW)
	lion             func(delta, mean, grad, x []float32, c Lion)
	exp              func(dst, x []float32)
	gelu, silu       func(dst, x []float32)
	sigmoid, tanh    func(dst, x []float32)
	geluGradient     func(grad, x []float32)
	siluGradient     func(grad, x []float32)
	sigmoidGradient  func(grad, out []float32)
	tanhGradient     func(grad, out []float32)
}

func plainGo() variant {
	return variant{
		"plain Go", false, addGo, subGo, mulGo, axpyGo, scaleGo, scaledDifferenceGo,
		squaredDistanceGo, sumSquaresGo, scaledDistanceGo, maxAbsGo, finiteGo,
		bf16EncodeGo, bf16DecodeGo, fp16DecodeGo, bf16FiniteGo, float32FiniteGo,
		rectifyGo, rectifyGradientGo, relu6Go, relu6GradientGo, momentumStepGo, nesterovStepGo, adamWStepGo, lionStepGo,
		expGo, geluGo, siluGo, sigmoidGo, tanhGo, geluGradientGo, siluGradientGo, sigmoidGradientGo, tanhGradientGo,
	}
}

func exported() variant {
	return variant{
		"exported", false, Add, Sub, Mul, Axpy, Scale, ScaledDifference,
		SquaredDistance, SumSquares, ScaledDistance, MaxAbs, Finite,
		BF16Encode, BF16Decode, FP16Decode, BF16Finite, Float32Finite,
		Rectify, RectifyGradient, ReLU6, ReLU6Gradient, MomentumStep, NesterovStep, AdamWStep, LionStep,
		Exp, GELU, SiLU, Sigmoid, Tanh, GELUGradient, SiLUGradient, SigmoidGradient, TanhGradient,
	}
}

func variants() []variant {
	return append([]variant{plainGo(), exported()}, assembled()...)
}

// onAll runs test for every variant that the CPU has, and says which it lacks.
func onAll(t *testing.T, test func(t *testing.T, v variant)) {
	t.Helper()
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			if v.missing {
				t.Skip("this CPU lacks the instructions")
			}
			test(t, v)
		})
	}
}
