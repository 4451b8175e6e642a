package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
)

// ValueSize is the number of bytes of one value in memory, in files and in raw
// codes.
const ValueSize = 4

// AppendBytes appends the values of v to dst as little-endian float32, four
// bytes each, and returns the extended slice.
func AppendBytes(dst []byte, v Vector) []byte {
	if view := byteView(v); view != nil {
		return append(dst, view...)
	}
	for _, x := range v {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
	}
	return dst
}

// putBytes writes the values of v to dst as little-endian float32. The bits of
// every value are kept, NaNs' included. It panics unless dst holds exactly
// ValueSize*len(v) bytes.
func putBytes(dst []byte, v Vector) {
	sameBytes("putBytes", len(dst), len(v))
	if view := byteView(v); view != nil {
		copy(dst, view)
		return
	}
	putPortable(dst, v)
}

// FromBytes reads little-endian float32 from src into dst, bit for bit. NaN and infinity are allowed: use Finite to
// detect them. It panics unless src holds exactly ValueSize*len(dst) bytes.
func FromBytes(dst Vector, src []byte) {
	sameBytes("FromBytes", len(src), len(dst))
	if view := byteView(dst); view != nil {
		copy(view, src)
		return
	}
	fromPortable(dst, src)
}

func putPortable(dst []byte, v Vector) {
	for i, x := range v {
		binary.LittleEndian.PutUint32(dst[ValueSize*i:], math.Float32bits(x))
	}
}

func fromPortable(dst Vector, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[ValueSize*i:]))
	}
}

func sameBytes(op string, bytes, values int) {
	if bytes != ValueSize*values {
		panic(fmt.Sprintf("tensor: %s of %d values and %d bytes", op, values, bytes))
	}
}
