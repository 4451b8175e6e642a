//go:build !purego && (386 || amd64 || arm || arm64 || loong64 || mips64le || mipsle || ppc64le || riscv64 || wasm)

package tensor

import "unsafe"

// byteView returns the memory of v as bytes, which on these little-endian hosts
// is its code. It is nil if v is.
func byteView(v Vector) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), ValueSize*len(v))
}
