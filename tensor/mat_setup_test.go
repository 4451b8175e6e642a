package tensor

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/seed-97356399/murmuration/internal/kernel"
)

// onTilers runs test with the microkernels of every set of instructions that the
// CPU has, and with gonum's product.
func onTilers(t *testing.T, test func(t *testing.T, tiler kernel.Tiler)) {
	t.Helper()
	for _, tiler := range append([]kernel.Tiler{0}, kernel.Tilers()...) {
		t.Run(tiler.String(), func(t *testing.T) { test(t, tiler) })
	}
}

// reporter is what tests of testing and of rapid share.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// guardMatrix is a NaN that no product makes.
const guardMatrix = 0x7fa5a5a5

// held is a matrix within a block of memory whose other values are guards.
type held struct {
	Matrix
	block Vector
	start int
}

// hold draws a matrix. What stride has more than a row is guarded too, so that
// what a product reads there shows in its result.
func hold(random *rand.Rand, rows, cols, stride int, transposed bool) held {
	m := Matrix{Rows: rows, Cols: cols, Stride: stride, transposed: transposed}
	count, length := m.lines()
	size := 0
	if count > 0 && length > 0 {
		size = (count-1)*stride + length
	}
	const before, after = 24, 40
	h := held{block: make(Vector, size+before+after), start: 1 + random.IntN(before)}
	for i := range h.block {
		h.block[i] = math.Float32frombits(guardMatrix)
	}
	m.Data = h.block[h.start:][:size:size]
	for i := range count {
		for j := range length {
			m.Data[i*stride+j] = float32(random.NormFloat64())
		}
	}
	h.Matrix = m
	return h
}

// checkGuards finds guards that were overwritten.
func (h held) checkGuards(t reporter) {
	t.Helper()
	_, length := h.lines()
	for i, v := range h.block {
		at := i - h.start
		inside := at >= 0 && at < len(h.Data) && (h.Stride == 0 || at%h.Stride < length)
		if !inside && math.Float32bits(v) != guardMatrix {
			t.Errorf("value %d, outside of a matrix of %d by %d with stride %d, was overwritten", at, h.Rows, h.Cols, h.Stride)
			return
		}
	}
}

// values returns the elements, row by row.
func (m Matrix) values() []float64 {
	list := make([]float64, 0, m.Rows*m.Cols)
	for i := range m.Rows {
		for j := range m.Cols {
			at := i*m.Stride + j
			if m.transposed {
				at = j*m.Stride + i
			}
			list = append(list, float64(m.Data[at]))
		}
	}
	return list
}

// product is a drawn product, and what it ought to give.
type product struct {
	c, a, b         held
	alpha, beta     float32
	want, magnitude []float64 // of each element, and of the terms of its sum
}

// drawStride draws how far rows of such a length are apart.
func drawStride(random *rand.Rand, length int, overlap bool) int {
	switch random.IntN(4) {
	case 0:
		return length + 1 + random.IntN(20)
	case 1:
		if overlap {
			return random.IntN(length + 1)
		}
	}
	return length
}

func drawMatrix(random *rand.Rand, rows, cols int, overlap bool) held {
	transposed := random.IntN(2) == 0
	length := cols
	if transposed {
		length = rows
	}
	return hold(random, rows, cols, drawStride(random, length, overlap), transposed)
}

func drawFactor(random *rand.Rand) float32 {
	return []float32{0, 1, 1, 1, float32(math.Copysign(0, -1)), -0.75}[random.IntN(6)]
}

// draw draws a product of these sizes.
func draw(random *rand.Rand, m, n, k int) *product {
	p := &product{
		c: drawMatrix(random, m, n, false), a: drawMatrix(random, m, k, true), b: drawMatrix(random, k, n, true),
		alpha: drawFactor(random), beta: drawFactor(random),
	}
	p.expect()
	return p
}

// expect computes the product in float64.
func (p *product) expect() {
	m, n, k := p.c.Rows, p.c.Cols, p.a.Cols
	a, b, c := p.a.values(), p.b.values(), p.c.values()
	p.want, p.magnitude = make([]float64, m*n), make([]float64, m*n)
	for i := range m {
		want, magnitude := p.want[i*n:][:n], p.magnitude[i*n:][:n]
		for l := range k {
			x := a[i*k+l] * float64(p.alpha)
			for j, y := range b[l*n:][:n] {
				want[j] += x * y
				magnitude[j] += math.Abs(x * y)
			}
		}
		for j := range want {
			if p.beta != 0 {
				want[j] += float64(p.beta) * c[i*n+j]
				magnitude[j] += math.Abs(float64(p.beta) * c[i*n+j])
			}
		}
	}
}

// check compares the result. Each of the additions and multiplications of an
// element rounds by at most half a unit in the last place of a sum no larger than
// the magnitude; that bound is 5e-5 of it at a depth of 784.
func (p *product) check(t reporter) {
	t.Helper()
	share := float64(p.a.Cols+4) * 0x1p-24
	for i, got := range p.c.values() {
		if diff := math.Abs(got - p.want[i]); !(diff <= share*p.magnitude[i]) {
			t.Errorf("%d by %d by %d: element (%d, %d) is %v, want %v", p.c.Rows, p.c.Cols, p.a.Cols,
				i/p.c.Cols, i%p.c.Cols, got, p.want[i])
			return
		}
	}
	for _, h := range []held{p.c, p.a, p.b} {
		h.checkGuards(t)
	}
}
