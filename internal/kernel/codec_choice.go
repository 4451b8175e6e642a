package kernel

// TEMPORARY stand-ins until generated.
func fp16Encode(dst []byte, x []float32)      { fp16EncodeGo(dst, x) }
func fp16Add(dst []float32, code []byte)      { fp16AddGo(dst, code) }
func fp16Sub(dst []float32, code []byte)      { fp16SubGo(dst, code) }
func fp16Finite(code []byte) bool             { return fp16FiniteGo(code) }
func pack(code, values []byte, width, at int) { packGo(code, values, width, at) }
func unpack(values, code []byte, width, at int, flip, minus byte) {
	unpackGo(values, code, width, at, flip, minus)
}
func latticeIndices(low []byte, x []float32, inverse float32) (sum uint32, most float32) {
	return latticeIndicesGo(low, x, inverse)
}
func latticeHigh(high []byte, x []float32, inverse float32) { latticeHighGo(high, x, inverse) }
func latticeValues(dst []float32, low []byte, reference []float32, spacing, inverse float32, shift uint32) (sum, most uint32) {
	return latticeValuesGo(dst, low, reference, spacing, inverse, shift)
}
func latticeValuesWide(dst []float32, low, high []byte, reference []float32, spacing, inverse float32, shift uint32) (sum, most uint32) {
	return latticeValuesWideGo(dst, low, high, reference, spacing, inverse, shift)
}
func latticeDifference(dst []float32, low []byte, reference []float32, spacing, inverse float32, shift uint32) (sum, most uint32, peak, squares float32) {
	return latticeDifferenceGo(dst, low, reference, spacing, inverse, shift)
}
func latticeDifferenceWide(dst []float32, low, high []byte, reference []float32, spacing, inverse float32, shift uint32) (sum, most uint32, peak, squares float32) {
	return latticeDifferenceWideGo(dst, low, high, reference, spacing, inverse, shift)
}
func quantizeSteps(steps []byte, x []float32, inverse float32) uint32 {
	return quantizeStepsGo(steps, x, inverse)
}
func signsOf(signs []byte, x []float32)                     { signsOfGo(signs, x) }
func sumAbs(x []float32) float64                            { return sumAbsGo(x) }
func stepSquares(steps []byte) uint32                       { return stepSquaresGo(steps) }
func stepsDecode(dst []float32, steps []byte, step float32) { stepsDecodeGo(dst, steps, step) }
func stepsAdd(dst []float32, steps []byte, step float32)    { stepsAddGo(dst, steps, step) }
