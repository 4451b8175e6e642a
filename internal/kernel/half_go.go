package kernel

import (
	"encoding/binary"
	"math"
)

func fp16EncodeGo(dst []byte, x []float32) {
	dst = dst[:2*len(x)]
	for i, v := range x {
		binary.LittleEndian.PutUint16(dst[2*i:], toHalf(v))
	}
}

// toHalf rounds by adding: a number with so large an exponent that its last place
// is the half's last place at v's magnitude leaves no other bits, and the processor
// rounds to nearest even.
func toHalf(v float32) uint16 {
	const (
		dropped    = 23 - 10 // bits of the fraction that a half lacks
		bias       = (127 - 15) << 10
		halfQuiet  = 0x7e00
		overflow   = 0x1.ffep15 // the largest finite half and half a step
		normal     = 0x1p-14    // the smallest with all bits of the fraction
		lastPlace  = 0x1p-1     // added to a subnormal half, whose last place is 2^-24
		lastPlaces = 0x3f000000 // its bits
	)
	b := math.Float32bits(v)
	sign, magnitude := uint16(b>>16&0x8000), b&magnitudeBits
	switch size := math.Float32frombits(magnitude); {
	case magnitude > infinityBits:
		return sign | halfQuiet | uint16(magnitude>>dropped&0x1ff)
	case size >= overflow:
		return sign | halfInfinity
	case size < normal:
		return sign | uint16(math.Float32bits(float32(size+lastPlace))-lastPlaces)
	default:
		const half = 1<<(dropped-1) - 1 // with the kept lowest bit added: half a step
		return sign | uint16((magnitude+half+magnitude>>dropped&1)>>dropped-bias)
	}
}

const halfInfinity = 0x7c00

// fp16FiniteGo uses the carry of a step of the exponent, as bf16FiniteGo does.
func fp16FiniteGo(code []byte) bool { return finite16(code, 0x0400040004000400) }
