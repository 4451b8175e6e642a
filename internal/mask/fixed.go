package mask

import (
	"math"
	"math/bits"
)

// MinExponent and MaxExponent bound the exponents of finite float64s, and sumBits the sum of all, beside its sign.
const (
	MinExponent, MaxExponent = -1073, 1024
	sumBits                  = 62
)

// Exponent is the least e for which all values are between -2^e and 2^e; MinExponent if all are zero.
func Exponent(values ...float64) int {
	most := math.SmallestNonzeroFloat64 // its exponent is MinExponent
	for _, v := range values {
		most = max(most, math.Abs(v))
	}
	_, e := math.Frexp(most)
	return e
}

// Scale is the k for which size members bring multiples of 2^-k: the largest with which the sum of values between
// ±2^exponent does not overflow. Integers are exact while k is not negative.
func Scale(exponent, size int) int { return sumBits - bits.Len(uint(size-1)) - exponent }

// Encode rounds values to multiples of 2^-k.
func Encode(values []float64, k int) []uint64 {
	words, a, b := make([]uint64, len(values)), math.Ldexp(1, k/2), math.Ldexp(1, k-k/2) // one factor could overflow
	for i, v := range values {
		words[i] = uint64(int64(math.RoundToEven(v * a * b)))
	}
	return words
}

// Decode is the reverse, rounded to a float64.
func Decode(words []uint64, k int) []float64 {
	values, a, b := make([]float64, len(words)), math.Ldexp(1, -k/2), math.Ldexp(1, k/2-k)
	for i, w := range words {
		values[i] = float64(int64(w)) * a * b
	}
	return values
}
