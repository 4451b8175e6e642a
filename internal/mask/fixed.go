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

// MostFine is how many numbers a vector may have and take two words each. The second has what the first has no bits
// for: short vectors hold numbers that are nothing alike, such as the total of a column of times and a count of rows.
const MostFine = 1 << 16

// Words is how many words so many numbers take.
func Words(numbers int) int {
	if numbers <= MostFine {
		return 2 * numbers
	}
	return numbers
}

// Point is where words have their point: a first word counts multiples of 2^-coarse, a second one of 2^-coarse-fine.
type Point struct{ coarse, fine int }

// PointOf is that of values between ±2^exponent which size members bring: the farthest right with which no sum overflows.
func PointOf(exponent, size int) Point {
	spare := sumBits - bits.Len(uint(size-1))
	return Point{coarse: spare - exponent, fine: spare + 1} // what the first word leaves is half of a multiple at most
}

// leastBits is how many bits a short vector has for fractions at least, if it has enough at all.
const leastBits = 24

// Enough tells whether a vector of so many numbers has bits enough: integers are exact, and so are fractions of 2^-24 in
// one whose numbers have two words. One number alone has enough.
func (p Point) Enough(numbers int) bool {
	if numbers > MostFine {
		return p.coarse >= 0
	}
	return numbers < 2 || p.coarse+p.fine >= leastBits
}

// Encode makes words of values, rounded to multiples: first words, then second ones.
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

// Decode makes so many values of words.
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
