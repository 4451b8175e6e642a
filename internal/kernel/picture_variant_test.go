package kernel

import "testing"

// pictureVariant is one implementation of the kernels for pictures and rows.
type pictureVariant struct {
	name    string
	missing bool // this CPU cannot run it
	run16   int  // pixels or taps that convolutions to 16 channels work on at once

	convolve16, convolve8       func(y, x, w []float32, c windows)
	gradient16, gradient8       func(w, x, y []float32, c windows)
	depthwise, depthGradient    func(a, x, b []float32, g grid)
	maxPool                     func(dst, x []float32, g grid)
	maxPoolPlaces               func(dst []float32, places []byte, x []float32, g grid)
	maxPoolGradient             func(dst []float32, places []byte, x []float32, g grid)
	addRows, addRowsRectify     func(x, row []float32, rows int)
	scaleRows, scaleRowsRectify func(dst, x, scale, shift []float32, rows int)
	combineRows                 func(dst, x, y, a, b, shift []float32, rows int)
	sumRows                     func(sum, x []float32, rows int)
	sumSquareRows               func(sum, product []float64, x []float32, rows int)
	sumProductRows              func(sum, product []float64, x, y []float32, rows int)
}

func plainPictures() pictureVariant {
	return pictureVariant{
		"plain Go", false, longestRun,
		convolve16Go, convolve8Go, convolveGradient16Go, convolveGradient8Go,
		depthwiseGo, depthwiseGradientGo, maxPoolGo, maxPoolPlacesGo, maxPoolGradientGo,
		addRowsGo, addRowsRectifyGo, scaleRowsGo, scaleRowsRectifyGo,
		combineRowsGo, sumRowsGo, sumSquareRowsGo, sumProductRowsGo,
	}
}

// chosenPictures are the functions that choose by the CPU.
func chosenPictures() pictureVariant {
	return pictureVariant{
		"chosen", false, convolveRun(16),
		convolve16, convolve8, convolveGradient16, convolveGradient8,
		depthwise, depthwiseGradient, maxPool, maxPoolPlaces, maxPoolGradient,
		addRows, addRowsRectify, scaleRows, scaleRowsRectify,
		combineRows, sumRows, sumSquareRows, sumProductRows,
	}
}

// onAllPictures runs test for every variant that the CPU has, and says which it
// lacks. fused tells whether a variant rounds a product and a sum once.
func onAllPictures(t *testing.T, test func(t *testing.T, v pictureVariant, fused bool)) {
	t.Helper()
	variants := append([]pictureVariant{plainPictures(), chosenPictures()}, assembledPictures()...)
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			if v.missing {
				t.Skip("this CPU lacks the instructions")
			}
			test(t, v, v.name != "plain Go" && Instructions() != "go")
		})
	}
}
