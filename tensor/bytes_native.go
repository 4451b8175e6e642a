//go:build !purego && (386 || amd64 || arm || arm64 || loong64 || mips64le || mipsle || ppc64le || riscv64 || wasm)

package tensor

import "unsafe"

// byteView returns the memory of v as bytes; on these little-endian hosts that is v's code. It is nil if v is.
func byteView(v Vector) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), ValueSize*len(v))
}

// vectorView returns b, the code of a vector, as that vector, without a copy. It reports false if b is not aligned.
func vectorView(b []byte) (Vector, bool) {
	at := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(at)%unsafe.Alignof(float32(0)) != 0 {
		return nil, false
	}
	return unsafe.Slice((*float32)(at), len(b)/ValueSize), true
}
