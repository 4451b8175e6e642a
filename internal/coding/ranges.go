package coding

import "math"

// A range is one side's estimate for a block: the largest difference of a parameter between the two models. 0 is
// unknown.

// Bounds of ranges that can be sent; 0 can be sent too.
const (
	MinRange float32 = 0x1p-44 * root4     // code 1
	MaxRange float32 = 0x1p19 * root4cubed // code 255
)

// Fractions at quarters of an octave from 1 to 2, as float32: powers of the fourth root of 2.
const (
	root4      = 0x1.306fep0
	root4twice = 0x1.6a09e6p0
	root4cubed = 0x1.ae89fap0
)

// Code c > 0 means 2^(c/4 - 44), with the fraction from the constants above.
const (
	perOctave    = 4
	lowestOctave = -44
	exponentBias = 127
	mantissaBits = 23
	mantissaMask = 1<<mantissaBits - 1
)

func quarters() [perOctave]float32 { return [...]float32{1, root4, root4twice, root4cubed} }

// RangeCode is the code of a range in one byte: the least code whose range is at least r. It is 0, unknown, if there
// is none, and for NaN and numbers that are not above 0.
func RangeCode(r float32) byte {
	switch {
	case !(r > 0) || r > MaxRange:
		return 0
	case r <= MinRange:
		return 1
	}
	bits := math.Float32bits(r)
	octave := int(bits>>mantissaBits) - exponentBias
	fraction := math.Float32frombits(bits&mantissaMask | exponentBias<<mantissaBits)
	code := (octave - lowestOctave) * perOctave
	for _, quarter := range quarters() {
		if fraction <= quarter {
			return byte(code)
		}
		code++
	}
	return byte(code)
}

// RangeOf is the range of a code.
func RangeOf(code byte) float32 {
	if code == 0 {
		return 0
	}
	octave := lowestOctave + int(code)/perOctave
	return float32(math.Ldexp(float64(quarters()[code%perOctave]), octave))
}

// Track returns the range of a block after an exchange, where seen is the largest difference in the block. A larger
// difference raises the range at once; a smaller one lowers it by a fifth of the way. The result is never unknown.
func Track(r, seen float32) float32 {
	if !(seen >= r) {
		seen = float32(0.8*r) + float32(0.2*seen)
	}
	return max(seen, MinRange)
}
