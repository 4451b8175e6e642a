//go:build !purego

package kernel

func assembledPictures() []pictureVariant {
	return []pictureVariant{{
		"AVX2", level < levelAVX2, longestRun / 2,
		convolve16AVX2, convolve8AVX2, convolveGradient16AVX2, convolveGradient8AVX2,
		depthwiseAVX2, depthwiseGradientAVX2, maxPoolAVX2, maxPoolPlacesAVX2, maxPoolGradientAVX2,
		addRowsAVX2, addRowsRectifyAVX2, scaleRowsAVX2, scaleRowsRectifyAVX2,
		combineRowsAVX2, sumRowsAVX2, sumSquareRowsAVX2, sumProductRowsAVX2,
	}, {
		"AVX512", level < levelAVX512, longestRun,
		convolve16AVX512, convolve8AVX512, convolveGradient16AVX512, convolveGradient8AVX512,
		depthwiseAVX512, depthwiseGradientAVX512, maxPoolAVX512, maxPoolPlacesAVX512, maxPoolGradientAVX512,
		addRowsAVX512, addRowsRectifyAVX512, scaleRowsAVX512, scaleRowsRectifyAVX512,
		combineRowsAVX512, sumRowsAVX512, sumSquareRowsAVX512, sumProductRowsAVX512,
	}}
}
