//go:build !purego

package kernel

func assembledCodecs() []codecVariant {
	avx2 := codecVariant{
		"AVX2", level < levelAVX2, true, fp16EncodeAVX2, fp16FiniteAVX2, packBitsAVX2, unpackBitsAVX2, unpackStepsAVX2,
		latticeIndicesAVX2, latticeHighAVX2,
		eitherValues(latticeValuesAVX2, latticeValuesWideAVX2), eitherDifference(latticeDifferenceAVX2, latticeDifferenceWideAVX2),
		quantizeStepsAVX2, quantizeSteps4AVX2, signsOfAVX2, sumAbsAVX2, stepSquaresAVX2, stepsDecodeAVX2, stepsAddAVX2,
	}
	past2 := avx2
	past2.name, past2.fp16Encode = "AVX2 past the cache", fp16EncodePastAVX2
	avx512 := codecVariant{
		"AVX512", level < levelAVX512, true, fp16EncodeAVX512, fp16FiniteAVX512, packBitsAVX512, unpackBitsAVX512, unpackStepsAVX512,
		latticeIndicesAVX512, latticeHighAVX512,
		eitherValues(latticeValuesAVX512, latticeValuesWideAVX512), eitherDifference(latticeDifferenceAVX512, latticeDifferenceWideAVX512),
		quantizeStepsAVX512, quantizeSteps4AVX512, signsOfAVX512, sumAbsAVX512, stepSquaresAVX512, stepsDecodeAVX512, stepsAddAVX512,
	}
	past512 := avx512
	past512.name, past512.fp16Encode = "AVX512 past the cache", fp16EncodePastAVX512
	return []codecVariant{avx2, past2, avx512, past512}
}
