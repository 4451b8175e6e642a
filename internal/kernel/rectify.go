package kernel

// Rectify equals
//
//	for i := range dst { if dst[i] < 0 { dst[i] = 0 } }
//
// NaN stays.
func Rectify(dst []float32) { rectify(dst) }

// RectifyGradient equals
//
//	for i := range grad { if out[i] <= 0 { grad[i] = 0 } }
func RectifyGradient(grad, out []float32) { rectifyGradient(grad, out[:len(grad)]) }
