package kernel

// Dot equals, up to the order of the additions,
//
//	for i := range x { sum += float64(x[i]) * float64(y[i]) }
//
// The products are exact; the sum is not.
func Dot(x, y []float32) float64 { return dotGo(x, y) }

// SumSquares equals, up to the order of the additions,
//
//	for i := range x { sum += float64(x[i]) * float64(x[i]) }
//
// It cannot overflow for finite x.
func SumSquares(x []float32) float64 { return dotGo(x, x) }

// SquaredDistance equals, up to the order of the additions,
//
//	for i := range x { d := float64(x[i]) - float64(y[i]); sum += d * d }
func SquaredDistance(x, y []float32) float64 { return squaredDistanceGo(x, y) }

// MaxAbs equals
//
//	for i := range x { largest = max(largest, abs(x[i])) }
//
// It is 0 for an empty x, and NaN if any value is NaN.
func MaxAbs(x []float32) float32 { return maxAbsGo(x) }

// Finite equals
//
//	for i := range x { if isNaN(x[i]) || isInf(x[i]) { return false } }
//	return true
func Finite(x []float32) bool { return finiteGo(x) }
