package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

const testEpsilon = 1e-5

// norm is one call's worth of rows to normalize.
type norm struct {
	rows, n               int
	x, grad, scale, shift []float32
	mean, inverse         []float32
	scaleGrad, shiftGrad  []float32
	normalized, slopes    []float64 // of the oracle
	wantScale, wantShift  []float64
	inputMost             float64
}

// oracle computes in float64 what LayerNorm and its gradient give.
func (m *norm) oracle() {
	m.wantScale, m.wantShift = make([]float64, m.n), make([]float64, m.n)
	for r := range m.rows {
		x, g := m.x[r*m.n:][:m.n], m.grad[r*m.n:][:m.n]
		mean, variance, n := 0.0, 0.0, float64(m.n)
		for _, v := range x {
			mean += float64(v) / n
		}
		for _, v := range x {
			variance += (float64(v) - mean) * (float64(v) - mean) / n
		}
		inverse := 1 / math.Sqrt(variance+testEpsilon)
		a, b := 0.0, 0.0
		for c, v := range x {
			h, s := (float64(v)-mean)*inverse, float64(m.scale[c])
			m.normalized = append(m.normalized, h*s+float64(m.shift[c]))
			a += float64(g[c]) * s / n
			b += float64(g[c]) * s * h / n
			m.wantScale[c] += float64(g[c]) * h
			m.wantShift[c] += float64(g[c])
		}
		for c, v := range x {
			h := (float64(v) - mean) * inverse
			m.slopes = append(m.slopes, (float64(g[c])*float64(m.scale[c])-a-h*b)*inverse)
		}
		m.inputMost = max(m.inputMost, inverse)
	}
}

func newNorm(random *rand.Rand, rows, n int) *norm {
	draw := func(n int, scale, shift float64) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(random.NormFloat64()*scale + shift)
		}
		return x
	}
	m := &norm{rows: rows, n: n, x: draw(rows*n, 2, 3), grad: draw(rows*n, 1, 0), scale: draw(n, 0.2, 1), shift: draw(n, 1, 0)}
	m.mean, m.inverse = make([]float32, rows), make([]float32, rows)
	m.scaleGrad, m.shiftGrad = make([]float32, n), make([]float32, n)
	m.oracle()
	return m
}

func TestLayerNormIsNear(t *testing.T) {
	forDense(t, func(t *testing.T, v rowVariant, rows, n int, random *rand.Rand) {
		m := newNorm(random, rows, n)
		y, checkY := guarded(t, m.x)
		v.layerNorm(y, m.mean, m.inverse, y, m.scale, m.shift, testEpsilon, rows)
		within(t, "LayerNorm", y, func(i int) float64 { return m.normalized[i] }, 4e-5)
		want, mean, inverse := make([]float32, rows*n), make([]float32, rows), make([]float32, rows)
		layerNormGo(want, mean, inverse, m.x, m.scale, m.shift, testEpsilon, rows)
		same := func(what string, got, want []float32) {
			t.Helper()
			sameBits(t, what+" beside its twin", got, func(i int) float64 { return float64(want[i]) })
		}
		same("LayerNorm", y, want)
		same("mean", m.mean, mean)
		same("inverse", m.inverse, inverse)

		grad, checkGrad := guarded(t, m.grad)
		scaleGrad, checkScale := guarded(t, m.scaleGrad)
		shiftGrad, checkShift := guarded(t, m.shiftGrad)
		v.layerNormSums(scaleGrad, shiftGrad, mean, inverse, grad, m.x, rows)
		v.layerNormGradient(grad, mean, inverse, grad, m.x, m.scale, rows)
		within(t, "scale", scaleGrad, func(i int) float64 { return m.wantScale[i] }, 4e-5)
		within(t, "shift", shiftGrad, func(i int) float64 { return m.wantShift[i] }, 4e-6)
		within(t, "input", grad, func(i int) float64 { return m.slopes[i] }, 4e-5*max(1, m.inputMost))
		layerNormSumsGo(m.scaleGrad, m.shiftGrad, mean, inverse, m.grad, m.x, rows)
		layerNormGradientGo(want, mean, inverse, m.grad, m.x, m.scale, rows)
		same("scale", scaleGrad, m.scaleGrad)
		same("shift", shiftGrad, m.shiftGrad)
		same("input", grad, want)
		for _, check := range []func(){checkY, checkGrad, checkScale, checkShift} {
			check()
		}
	})
}

// TestLayerNormInPieces: a matrix of several calls is that of its rows, and gradients
// over scale and shift add to what is there.
func TestLayerNormInPieces(t *testing.T) {
	const n, rows = 48, 2*rowsPiece/48 + 3
	m := newNorm(rand.New(rand.NewPCG(5, 5)), rows, n)
	y, grad := make([]float32, rows*n), make([]float32, rows*n)
	LayerNorm(y, m.mean, m.inverse, m.x, m.scale, m.shift, testEpsilon)
	scaleGrad, shiftGrad := slices.Repeat([]float32{1}, n), slices.Repeat([]float32{2}, n)
	LayerNormGradient(grad, scaleGrad, shiftGrad, m.grad, m.x, m.mean, m.inverse, m.scale)
	within(t, "LayerNorm", y, func(i int) float64 { return m.normalized[i] }, 4e-6)
	within(t, "input", grad, func(i int) float64 { return m.slopes[i] }, 4e-6)
	within(t, "scale", scaleGrad, func(i int) float64 { return m.wantScale[i] + 1 }, 1e-4)
	within(t, "shift", shiftGrad, func(i int) float64 { return m.wantShift[i] + 2 }, 1e-4)
}
