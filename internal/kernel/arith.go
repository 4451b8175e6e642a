package kernel

// Add equals
//
//	for i := range dst { dst[i] += x[i] }
func Add(dst, x []float32) { add(dst, x[:len(dst)]) }

// Sub equals
//
//	for i := range dst { dst[i] -= x[i] }
func Sub(dst, x []float32) { sub(dst, x[:len(dst)]) }

// Mul equals
//
//	for i := range dst { dst[i] *= x[i] }
func Mul(dst, x []float32) { mul(dst, x[:len(dst)]) }

// Axpy equals
//
//	for i := range dst { dst[i] += float32(a * x[i]) }
func Axpy(dst []float32, a float32, x []float32) { axpy(dst, a, x[:len(dst)]) }

// Scale equals
//
//	for i := range dst { dst[i] *= a }
func Scale(dst []float32, a float32) { scale(dst, a) }

// ScaledDifference equals
//
//	for i := range dst { dst[i] = w * (x[i] - y[i]) }
//
// dst may be x or y.
func ScaledDifference(dst []float32, w float32, x, y []float32) {
	scaledDifference(dst, w, x[:len(dst)], y[:len(dst)])
}
