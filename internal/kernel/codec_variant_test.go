package kernel

import "testing"

// codecVariant is one implementation of the kernels of codecs.
type codecVariant struct {
	name          string
	missing       bool // this CPU cannot run it
	block         bool // its kernels of blocks take whole ones only
	fp16Encode    func(dst []byte, x []float32)
	fp16Finite    func(code []byte) bool
	packBits      func(code, values []byte, bits int)
	unpackBits    func(values, code []byte, bits int)
	unpackSteps   func(values, code []byte, bits int)
	indices       func(low []byte, x []float32, inverse float32) (sum uint32, most float32)
	high          func(high []byte, x []float32, inverse float32)
	values        func(dst []float32, low, high []byte, reference []float32, spacing, inverse float32, bits int) uint32
	difference    func(dst []float32, low, high []byte, reference []float32, spacing, inverse float32, bits int) (sum uint32, peak, squares float32)
	steps, steps4 func(steps []byte, x []float32, inverse float32) uint32
	signs         func(signs []byte, x []float32)
	sumAbs        func(x []float32) float64
	squares       func(steps []byte) uint32
	decode, add   func(dst []float32, steps []byte, step float32)
}

func plainCodecs() codecVariant {
	return codecVariant{
		"plain Go", false, false, fp16EncodeGo, fp16FiniteGo, packBitsGo, unpackBitsGo, unpackStepsGo,
		latticeIndicesGo, latticeHighGo,
		eitherValues(latticeValuesGo, latticeValuesWideGo), eitherDifference(latticeDifferenceGo, latticeDifferenceWideGo),
		quantizeStepsGo, quantizeSteps4Go, signsOfGo, sumAbsGo, stepSquaresGo, stepsDecodeGo, stepsAddGo,
	}
}

func exportedCodecs() codecVariant {
	return codecVariant{
		"exported", false, false, FP16Encode, FP16Finite, PackBits, UnpackBits, UnpackSteps,
		LatticeIndices, LatticeHigh, LatticeValues, LatticeDifference,
		Steps, Steps4, Signs, SumAbs, StepSquares, StepsDecode, StepsAdd,
	}
}

type (
	narrowValues     = func(dst []float32, low []byte, reference []float32, spacing, inverse float32, half, mask uint32) uint32
	wideValues       = func(dst []float32, low, high []byte, reference []float32, spacing, inverse float32, half, mask uint32) uint32
	narrowDifference = func(dst []float32, low []byte, reference []float32, spacing, inverse float32, half, mask uint32) (sum uint32, peak, squares float32)
	wideDifference   = func(dst []float32, low, high []byte, reference []float32, spacing, inverse float32, half, mask uint32) (sum uint32, peak, squares float32)
)

func eitherValues(narrow narrowValues, wide wideValues) func(dst []float32, low, high []byte, reference []float32, spacing, inverse float32, bits int) uint32 {
	return func(dst []float32, low, high []byte, reference []float32, spacing, inverse float32, bits int) uint32 {
		half, mask := uint32(1)<<bits/2, uint32(1)<<bits-1
		if bits <= 8 {
			return narrow(dst, low, reference, spacing, inverse, half, mask)
		}
		return wide(dst, low, high, reference, spacing, inverse, half, mask)
	}
}

func eitherDifference(narrow narrowDifference, wide wideDifference) func(dst []float32, low, high []byte, reference []float32, spacing, inverse float32, bits int) (sum uint32, peak, squares float32) {
	return func(dst []float32, low, high []byte, reference []float32, spacing, inverse float32, bits int) (sum uint32, peak, squares float32) {
		half, mask := uint32(1)<<bits/2, uint32(1)<<bits-1
		if bits <= 8 {
			return narrow(dst, low, reference, spacing, inverse, half, mask)
		}
		return wide(dst, low, high, reference, spacing, inverse, half, mask)
	}
}

// onAllCodecs runs test for every variant that the CPU has, and says which it lacks.
func onAllCodecs(t *testing.T, test func(t *testing.T, v codecVariant)) {
	t.Helper()
	for _, v := range append([]codecVariant{plainCodecs(), exportedCodecs()}, assembledCodecs()...) {
		t.Run(v.name, func(t *testing.T) {
			if v.missing {
				t.Skip("this CPU lacks the instructions")
			}
			test(t, v)
		})
	}
}
