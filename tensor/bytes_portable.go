//go:build purego || !(386 || amd64 || arm || arm64 || loong64 || mips64le || mipsle || ppc64le || riscv64 || wasm)

package tensor

// byteView returns nil: the host is big-endian, unknown, or told to do without
// package unsafe, and the caller converts value by value.
func byteView(Vector) []byte { return nil }

func vectorView([]byte) (Vector, bool) { return nil, false }
