package kernel

// Depthwise equals, up to rounding,
//
//	for r := range g.Rows {
//		for p := range g.Cols {
//			for c := range g.Channels {
//				sum := 0
//				for t := range 9 {
//					from := (r*g.Stride+t/3)*g.Line + (p*g.Stride+t%3)*g.Channels + c
//					sum += x[from] * w[t*g.Channels+c]
//				}
//				y[(r*g.Cols+p)*g.Channels+c] = sum
//			}
//		}
//	}
//
// Assembly rounds as Convolve16 does.
func Depthwise(y, x, w []float32, g Grid) {
	g.check(len(y), len(x), windowLines)
	_ = w[depthTaps*g.Channels-1]
	g.parts(g.deep(), func(to, from int, part grid) { depthwise(y[to:], x[from:], w, part) })
}

// DepthwiseGradient equals, up to rounding,
//
//	for r := range g.Rows {
//		for t := range 9 {
//			for c := range g.Channels {
//				sum := 0
//				for p := range g.Cols {
//					from := (r*g.Stride+t/3)*g.Line + (p*g.Stride+t%3)*g.Channels + c
//					sum += x[from] * y[(r*g.Cols+p)*g.Channels+c]
//				}
//				w[t*g.Channels+c] += sum
//			}
//		}
//	}
func DepthwiseGradient(w, x, y []float32, g Grid) {
	g.check(len(y), len(x), windowLines)
	_ = w[depthTaps*g.Channels-1]
	g.parts(g.deep(), func(to, from int, part grid) { depthwiseGradient(w, x[from:], y[to:], part) })
}

// depthTaps is the number of weights of a channel.
const depthTaps = windowLines * windowLines
