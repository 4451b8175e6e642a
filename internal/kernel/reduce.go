package kernel

// SumSquares equals, up to the order of the additions,
//
//	for i := range x { sum += float64(x[i]) * float64(x[i]) }
//
// It cannot overflow for finite x.
func SumSquares(x []float32) float64 { return sumSquares(x) }

// SquaredDistance equals, up to the order of the additions,
//
//	for i := range x { d := float64(x[i]) - float64(y[i]); sum += d * d }
func SquaredDistance(x, y []float32) float64 { return squaredDistance(x, y[:len(x)]) }

// ScaledDistance is ScaledDifference and the squared distance in one pass. It
// equals, up to the order of the additions,
//
//	for i := range dst { d := x[i] - y[i]; dst[i] = w * d; sum += float64(d) * float64(d) }
//
// dst may be x or y. The differences are rounded to float32 before they are squared.
func ScaledDistance(dst []float32, w float32, x, y []float32) float64 {
	return scaledDistance(dst, w, x[:len(dst)], y[:len(dst)])
}

// MaxAbs equals
//
//	for i := range x { largest = max(largest, abs(x[i])) }
//
// It is 0 for an empty x, and NaN if any value is NaN.
func MaxAbs(x []float32) float32 { return maxAbs(x) }

// Finite equals
//
//	for i := range x { if isNaN(x[i]) || isInf(x[i]) { return false } }
//	return true
func Finite(x []float32) bool { return finite(x) }
