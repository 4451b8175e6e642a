package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// lineSize is an alignment that no kernel looks beyond, in bytes.
const lineSize = 64

// memory is what kernels work on: vectors and codes of n values, each within a
// block of which nobody may touch the rest.
type memory struct {
	a, b, c, d, e []float32
	half, full    []byte // codes of two and of four bytes a value
	factor        float32
	floats        [5][]float32
	bytes         [2][]byte
}

// newMemory has each slice start at another distance from the start of a line,
// which offset varies.
func newMemory(n, offset int) *memory {
	m := &memory{factor: -0.37}
	for i, slice := range []*[]float32{&m.a, &m.b, &m.c, &m.d, &m.e} {
		const line = lineSize / 4
		block := make([]float32, n+4*line)
		m.floats[i] = block[misaligned(unsafe.Pointer(&block[0]))/4:][:n+3*line]
		start := line + (offset+5*i)%line
		*slice = m.floats[i][start : start+n : start+n]
	}
	for i, slice := range []*[]byte{&m.half, &m.full} {
		size := (2 + 2*i) * n
		block := make([]byte, size+4*lineSize)
		m.bytes[i] = block[misaligned(unsafe.Pointer(&block[0])):][:size+3*lineSize]
		start := lineSize + (offset+7*i)%lineSize
		*slice = m.bytes[i][start : start+size : start+size]
	}
	return m
}

// misaligned is the number of bytes from p to the next line.
func misaligned(p unsafe.Pointer) int { return int(-uintptr(p) % lineSize) }

// fill draws the contents: finite values and codes, or some that are not.
func (m *memory) fill(random *rand.Rand, finite bool) {
	for _, f := range m.floats {
		copy(f, values(random, len(f)))
		for i := range f {
			if !finite && random.IntN(16) == 0 {
				f[i] = math.Float32frombits(random.Uint32() | infinityBits)
			}
		}
	}
	for i := range m.e { // the mean of squares
		m.e[i] = float32(math.Abs(float64(m.e[i])))
	}
	for _, b := range m.bytes {
		for i := range b {
			if b[i] = byte(random.Uint32()); finite {
				b[i] &= 0x3f // no exponent is all ones
			}
		}
	}
}

func (m *memory) copyFrom(other *memory) {
	for i, f := range m.floats {
		copy(f, other.floats[i])
	}
	for i, b := range m.bytes {
		copy(b, other.bytes[i])
	}
}

// sameMemory compares everything in and around the slices. A NaN equals any
// other: which one an operation passes on is not promised.
func sameMemory(t *testing.T, got, want *memory) {
	t.Helper()
	for i, f := range got.floats {
		for j, g := range f {
			w := want.floats[i][j]
			if math.Float32bits(g) != math.Float32bits(w) && !(g != g && w != w) {
				t.Errorf("vector %d: value %d of the block is %v (%#x), want %v (%#x)",
					i, j, g, math.Float32bits(g), w, math.Float32bits(w))
				return
			}
		}
	}
	for i, b := range got.bytes {
		for j, g := range b {
			if w := want.bytes[i][j]; g != w {
				t.Errorf("code %d: byte %d of the block is %#x, want %#x", i, j, g, w)
				return
			}
		}
	}
}
