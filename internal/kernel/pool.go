package kernel

// MaxPool equals
//
//	for r := range g.Rows {
//		for p := range g.Cols {
//			for c := range g.Channels {
//				at := 2*r*g.Line + 2*p*g.Channels + c
//				best, place := x[at], 0
//				for i, v := range {x[at+g.Channels], x[at+g.Line], x[at+g.Line+g.Channels]} {
//					if v > best { best, place = v, i+1 }
//				}
//				dst[i], places[i] = best, place // i counts the values
//			}
//		}
//	}
//
// places may be nil. The stride of g counts as 2.
func MaxPool(dst []float32, places []byte, x []float32, g Grid) {
	g.Stride = 2
	g.check(len(dst), len(x), 2)
	if places == nil {
		g.parts(g.pooled(), func(y, from int, part grid) { maxPool(dst[y:], x[from:], part) })
		return
	}
	g.check(len(places), len(x), 2)
	g.parts(g.pooled(), func(y, from int, part grid) { maxPoolPlaces(dst[y:], places[y:], x[from:], part) })
}

// MaxPoolGradient takes values of y back to their places: of the four values of dst
// that MaxPool found the largest of, the one at the place is set to y's, the others
// to 0.
func MaxPoolGradient(dst []float32, places []byte, y []float32, g Grid) {
	g.Stride = 2
	g.check(min(len(y), len(places)), len(dst), 2)
	g.parts(g.pooled(), func(from, to int, part grid) { maxPoolGradient(dst[to:], places[from:], y[from:], part) })
}
