package coding

import "math"

// A range is what one side believes of a block: how far apart, at most, the two
// models are there, as the largest difference of a parameter. 0 is unknown.

// Ranges that can be sent, beside 0.
const (
	MinRange float32 = 0x1p-44 * root4     // code 1
	MaxRange float32 = 0x1p19 * root4cubed // code 255
)

// The quarter octaves between 1 and 2, as float32: powers of the fourth root of 2.
const (
	root4      = 0x1.306fep0
	root4twice = 0x1.6a09e6p0
	root4cubed = 0x1.ae89fap0
)

// Code c > 0 stands for 2^(c/4 - 44), the fraction by the constants above.
const (
	perOctave    = 4
	lowestOctave = -44
	exponentBias = 127
	mantissaBits = 23
	mantissaMask = 1<<mantissaBits - 1
)

func quarters() [perOctave]float32 { return [...]float32{1, root4, root4twice, root4cubed} }

// RangeCode is the code of a range, one byte: the smallest that stands for at least
// as much, or 0, unknown, if there is none, as for what is not above 0 or NaN.
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

// RangeOf is what a code stands for.
func RangeOf(code byte) float32 {
	if code == 0 {
		return 0
	}
	octave := lowestOctave + int(code)/perOctave
	return float32(math.Ldexp(float64(quarters()[code%perOctave]), octave))
}

// Track is the range of a block after an exchange in which the largest difference
// was seen: up at once, down a fifth of the way, and never unknown again.
func Track(r, seen float32) float32 {
	if !(seen >= r) {
		seen = float32(0.8*r) + float32(0.2*seen)
	}
	return max(seen, MinRange)
}
