//go:build !purego

package kernel

func assembled() []variant {
	avx2 := variant{
		"AVX2", level < levelAVX2, addAVX2, subAVX2, mulAVX2, axpyAVX2, scaleAVX2, scaledDifferenceAVX2,
		squaredDistanceAVX2, sumSquaresAVX2, scaledDistanceAVX2, maxAbsAVX2, finiteAVX2,
		bf16EncodeAVX2, bf16DecodeAVX2, fp16DecodeAVX2, bf16FiniteAVX2, float32FiniteAVX2,
		rectifyAVX2, rectifyGradientAVX2, relu6AVX2, relu6GradientAVX2, momentumStepAVX2, nesterovStepAVX2, adamWStepAVX2, lionStepAVX2,
		expAVX2, geluAVX2, siluAVX2, sigmoidAVX2, tanhAVX2, geluGradientAVX2, siluGradientAVX2, sigmoidGradientAVX2, tanhGradientAVX2,
	}
	past2 := avx2
	past2.name = "AVX2 past the cache"
	past2.scaledDifference = scaledDifferencePastAVX2
	past2.bf16Encode, past2.bf16Decode, past2.fp16Decode = bf16EncodePastAVX2, bf16DecodePastAVX2, fp16DecodePastAVX2

	avx512 := variant{
		"AVX512", level < levelAVX512, addAVX512, subAVX512, mulAVX512, axpyAVX512, scaleAVX512, scaledDifferenceAVX512,
		squaredDistanceAVX512, sumSquaresAVX512, scaledDistanceAVX512, maxAbsAVX512, finiteAVX512,
		bf16EncodeAVX512, bf16DecodeAVX512, fp16DecodeAVX512, bf16FiniteAVX512, float32FiniteAVX512,
		rectifyAVX512, rectifyGradientAVX512, relu6AVX512, relu6GradientAVX512, momentumStepAVX512, nesterovStepAVX512, adamWStepAVX512, lionStepAVX512,
		expAVX512, geluAVX512, siluAVX512, sigmoidAVX512, tanhAVX512, geluGradientAVX512, siluGradientAVX512, sigmoidGradientAVX512, tanhGradientAVX512,
	}
	past512 := avx512
	past512.name = "AVX512 past the cache"
	past512.scaledDifference = scaledDifferencePastAVX512
	past512.bf16Encode, past512.bf16Decode, past512.fp16Decode = bf16EncodePastAVX512, bf16DecodePastAVX512, fp16DecodePastAVX512
	return []variant{avx2, past2, avx512, past512}
}
