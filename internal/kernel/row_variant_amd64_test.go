//go:build !purego

package kernel

func assembledRows() []rowVariant {
	return []rowVariant{
		{"AVX2", level < levelAVX2, softmaxRowsAVX2, softmaxRowsGradientAVX2, addRowsGELUAVX2, layerNormAVX2, layerNormGradientAVX2, layerNormSumsAVX2},
		{"AVX512", level < levelAVX512, softmaxRowsAVX512, softmaxRowsGradientAVX512, addRowsGELUAVX512, layerNormAVX512, layerNormGradientAVX512, layerNormSumsAVX512},
	}
}
