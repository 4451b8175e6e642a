//go:build purego || !(386 || amd64 || arm || arm64 || loong64 || mips64le || mipsle || ppc64le || riscv64 || wasm)

package tensor

// byteView returns nil, so the caller converts value by value: the host is big-endian or unknown, or the purego build
// tag forbids package unsafe.
func byteView(Vector) []byte { return nil }

func vectorView([]byte) (Vector, bool) { return nil, false }
