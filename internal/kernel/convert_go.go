package kernel

import (
	"encoding/binary"
	"math"
)

const (
	infinityBits  = 0x7f800000
	bf16QuietBit  = 0x0040
	bf16RoundHalf = 0x7fff // with the kept lowest bit added: half a step, ties to even
)

func bf16EncodeGo(dst []byte, x []float32) {
	dst = dst[:2*len(x)]
	for len(x) >= 4 && len(dst) >= 8 {
		a := (*[4]float32)(x)
		code := uint64(bf16(a[0])) | uint64(bf16(a[1]))<<16 |
			uint64(bf16(a[2]))<<32 | uint64(bf16(a[3]))<<48
		binary.LittleEndian.PutUint64(dst, code)
		x, dst = x[4:], dst[8:]
	}
	for i, v := range x {
		binary.LittleEndian.PutUint16(dst[2*i:], uint16(bf16(v)))
	}
}

// bf16 returns the bfloat16 of v in the low 16 bits.
func bf16(v float32) uint32 {
	b := math.Float32bits(v)
	if b&magnitudeBits > infinityBits {
		// Rounding could carry a NaN into infinity or zero.
		return b>>16 | bf16QuietBit
	}
	return (b + bf16RoundHalf + b>>16&1) >> 16
}

func bf16DecodeGo(dst []float32, code []byte) {
	code = code[:2*len(dst)]
	for len(dst) >= 4 && len(code) >= 8 {
		a, c := (*[4]float32)(dst), binary.LittleEndian.Uint64(code)
		a[0] = math.Float32frombits(uint32(c) << 16)
		a[1] = math.Float32frombits(uint32(c>>16) << 16)
		a[2] = math.Float32frombits(uint32(c>>32) << 16)
		a[3] = math.Float32frombits(uint32(c>>48) << 16)
		dst, code = dst[4:], code[8:]
	}
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(code[2*i:])) << 16)
	}
}

// bf16FiniteGo and float32FiniteGo use the carry of finiteGo on all the lanes
// of a 64-bit word at once; no lane's carry leaves it, for its own sign bit was
// cleared before.

func bf16FiniteGo(code []byte) bool { return finite16(code, 0x0080008000800080) }

// finite16 tells that no value of 16 bits has the largest exponent, of which steps holds
// the lowest bit for each lane.
func finite16(code []byte, steps uint64) bool {
	const (
		magnitudes = 0x7fff7fff7fff7fff
		signs      = 0x8000800080008000
	)
	var carry uint64
	for len(code) >= 8 {
		carry |= binary.LittleEndian.Uint64(code)&magnitudes + steps
		code = code[8:]
	}
	for len(code) >= 2 {
		carry |= uint64(binary.LittleEndian.Uint16(code))&magnitudes + steps
		code = code[2:]
	}
	return carry&signs == 0
}

func float32FiniteGo(code []byte) bool {
	const (
		magnitudes = 0x7fffffff7fffffff
		steps      = 0x0080000000800000
		signs      = 0x8000000080000000
	)
	var carry uint64
	for len(code) >= 8 {
		carry |= binary.LittleEndian.Uint64(code)&magnitudes + steps
		code = code[8:]
	}
	for len(code) >= 4 {
		carry |= uint64(binary.LittleEndian.Uint32(code))&magnitudes + steps
		code = code[4:]
	}
	return carry&signs == 0
}

func fp16DecodeGo(dst []float32, code []byte) {
	code = code[:2*len(dst)]
	for i := range dst {
		dst[i] = fromHalf(binary.LittleEndian.Uint16(code[2*i:]))
	}
}

// fromHalf shifts the half's exponent and fraction into place and rebiases the
// exponent by multiplying with 2^(127-15), which also normalizes subnormals;
// the half's infinity and NaN need their exponent set by hand.
func fromHalf(h uint16) float32 {
	const (
		halfMagnitude = 0x7fff
		halfInfinity  = 0x7c00
		rebias        = 0x1p112
	)
	sign := uint32(h&^halfMagnitude) << 16
	b := uint32(h&halfMagnitude) << 13
	if h&halfMagnitude >= halfInfinity {
		return math.Float32frombits(sign | b | infinityBits)
	}
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(b)*rebias))
}
