package mask

import (
	"math"
	"math/bits"
)

// MinExponent and MaxExponent bound the exponents of finite float64s; sumBits is the bits of a sum besides its sign.
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

// MostFine is the most numbers in a vector that takes two words for each number. The second word has the bits that do
// not fit in the first: short vectors may mix very different numbers, such as the total of a column of times and a
// count of rows.
const MostFine = 1 << 16

// Words is how many words that many numbers take.
func Words(numbers int) int {
	if numbers <= MostFine {
		return 2 * numbers
	}
	return numbers
}

// Point is the fixed point: a first word counts multiples of 2^-coarse, a second word multiples of 2^-coarse-fine.
type Point struct{ coarse, fine int }

// PointOf is the point for values between ±2^exponent of size members: the finest with which no sum overflows.
func PointOf(exponent, size int) Point {
	spare := sumBits - bits.Len(uint(size-1))
	return Point{coarse: spare - exponent, fine: spare + 1} // the remainder of the first word is at most half a multiple
}

// leastBits is the least number of bits for fractions in a short vector that has enough bits.
const leastBits = 24

// Enough tells whether a vector of that many numbers has enough bits: integers are exact, and with two words also
// fractions of 2^-24. A single number always has enough.
func (p Point) Enough(numbers int) bool {
	if numbers > MostFine {
		return p.coarse >= 0
	}
	return numbers < 2 || p.coarse+p.fine >= leastBits
}

// Encode converts values to words, rounded to multiples: all first words, then all second words.
func (p Point) Encode(values []float64) []uint64 {
	words, a, b := make([]uint64, Words(len(values))), math.Ldexp(1, p.coarse/2), math.Ldexp(1, p.coarse-p.coarse/2) // one factor could overflow
	second := words[len(values):]
	for i, v := range values {
		exact := v * a * b
		first := math.RoundToEven(exact)
		if words[i] = uint64(int64(first)); len(second) > 0 {
			second[i] = uint64(int64(math.RoundToEven(math.Ldexp(exact-first, p.fine))))
		}
	}
	return words
}

// Decode converts words to that many values.
func (p Point) Decode(words []uint64, numbers int) []float64 {
	values, a, b := make([]float64, numbers), math.Ldexp(1, -p.coarse/2), math.Ldexp(1, p.coarse/2-p.coarse)
	second := words[numbers:]
	for i := range values {
		first := float64(int64(words[i]))
		if len(second) > 0 {
			first += math.Ldexp(float64(int64(second[i])), -p.fine)
		}
		values[i] = first * a * b
	}
	return values
}
