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

// ReLU6 equals
//
//	for i, v := range x { dst[i] = min(max(v, 0), 6) }
//
// but -0 stays. Both slices may be the same.
func ReLU6(dst, x []float32) { relu6(dst, x[:len(dst)]) }

// ReLU6Gradient equals
//
//	for i := range grad { if out[i] <= 0 || out[i] >= 6 { grad[i] = 0 } }
func ReLU6Gradient(grad, out []float32) { relu6Gradient(grad, out[:len(grad)]) }
