//go:build !purego && (386 || amd64 || arm || arm64 || loong64 || mips64le || mipsle || ppc64le || riscv64 || wasm)

package tensor

import "unsafe"

// byteView returns the memory of v as bytes, which on these little-endian hosts
// is its code. It is nil if v is.
func byteView(v Vector) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), ValueSize*len(v))
}

// vectorView returns b as the vector that it is the code of, if it is aligned.
func vectorView(b []byte) (Vector, bool) {
	at := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(at)%unsafe.Alignof(float32(0)) != 0 {
		return nil, false
	}
	return unsafe.Slice((*float32)(at), len(b)/ValueSize), true
}
