package tensor

import (
	"bytes"
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/internal/kernel"
)

// Vector is a run of values: a whole model, a gradient, or a slice of one.
// Slicing it shares the values, as with any Go slice.
//
// Functions that take several vectors need them of equal length, and either identical or not overlapping. Unequal
// lengths are an error of the program: the functions panic, as for an index out of range.
type Vector []float32

// Add adds x to dst: dst += x.
func Add(dst, x Vector) {
	sameLength("Add", len(dst), len(x))
	kernel.Add(dst, x)
}

// Sub subtracts x from dst: dst -= x.
func Sub(dst, x Vector) {
	sameLength("Sub", len(dst), len(x))
	kernel.Sub(dst, x)
}

// Axpy adds a times x to dst: dst += a*x. The product is rounded before it is
// added, on every CPU.
func Axpy(dst Vector, a float32, x Vector) {
	sameLength("Axpy", len(dst), len(x))
	kernel.Axpy(dst, a, x)
}

// Scale multiplies dst by a.
func Scale(dst Vector, a float32) { kernel.Scale(dst, a) }

// ScaledDifference sets dst to w*(x-y). dst may be x or y.
func ScaledDifference(dst Vector, w float32, x, y Vector) {
	sameLength("ScaledDifference", len(dst), len(x))
	sameLength("ScaledDifference", len(dst), len(y))
	kernel.ScaledDifference(dst, w, x, y)
}

// ScaledDistance sets dst to w*(x-y), as ScaledDifference does, and returns the sum of the squared differences x-y in
// the same pass. dst may be x or y. The differences are rounded to float32 first: if one overflows, the sum is
// infinite or NaN.
func ScaledDistance(dst Vector, w float32, x, y Vector) float64 {
	sameLength("ScaledDistance", len(dst), len(x))
	sameLength("ScaledDistance", len(dst), len(y))
	return kernel.ScaledDistance(dst, w, x, y)
}

// SumSquares returns the square of the Euclidean norm of x.
func SumSquares(x Vector) float64 { return kernel.SumSquares(x) }

// Norm2 returns the Euclidean norm of x.
func Norm2(x Vector) float64 { return math.Sqrt(kernel.SumSquares(x)) }

// SquaredDistance returns the square of the Euclidean distance of x and y.
func SquaredDistance(x, y Vector) float64 {
	sameLength("SquaredDistance", len(x), len(y))
	return kernel.SquaredDistance(x, y)
}

// MaxAbs returns the largest magnitude in x: 0 if x is empty, NaN if x holds a
// NaN.
func MaxAbs(x Vector) float32 { return kernel.MaxAbs(x) }

// Finite tells whether x holds neither NaN nor infinity.
func Finite(x Vector) bool { return kernel.Finite(x) }

// Instructions names the vector instructions that this package and package quant use on this CPU: "avx512", "avx2",
// or "go" for compiled plain loops. Results do not depend on it, except for the last digits of sums.
func Instructions() string { return kernel.Instructions() }

// sameLength panics if the lengths differ. It is small so that callers inline
// it.
func sameLength(op string, a, b int) {
	if a != b {
		lengthPanic(op, a, b)
	}
}

func lengthPanic(op string, a, b int) {
	panic(fmt.Sprintf("tensor: %s of vectors of %d and %d values", op, a, b))
}

// Identical tells whether two vectors have the same bits: a NaN equals itself, and 0 does not equal −0.
func Identical(a, b Vector) bool {
	if len(a) != len(b) {
		return false
	}
	if x, y := byteView(a), byteView(b); x != nil && y != nil {
		return bytes.Equal(x, y) // as fast as memory
	}
	for i, v := range a {
		if math.Float32bits(v) != math.Float32bits(b[i]) {
			return false
		}
	}
	return true
}
