package kernel

// Add equals
//
//	for i := range dst { dst[i] += x[i] }
func Add(dst, x []float32) { addGo(dst, x) }

// Sub equals
//
//	for i := range dst { dst[i] -= x[i] }
func Sub(dst, x []float32) { subGo(dst, x) }

// Axpy equals
//
//	for i := range dst { dst[i] += float32(a * x[i]) }
func Axpy(dst []float32, a float32, x []float32) { axpyGo(dst, a, x) }

// Scale equals
//
//	for i := range dst { dst[i] *= a }
func Scale(dst []float32, a float32) { scaleGo(dst, a) }

// ScaledDifference equals
//
//	for i := range dst { dst[i] = w * (x[i] - y[i]) }
//
// dst may be x or y.
func ScaledDifference(dst []float32, w float32, x, y []float32) {
	scaledDifferenceGo(dst, w, x, y)
}
