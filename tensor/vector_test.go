package tensor

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// vectors draws k vectors of one length.
func vectors(t *rapid.T, k int) []Vector {
	n := rapid.IntRange(0, 40).Draw(t, "length")
	vs := make([]Vector, k)
	for i := range vs {
		vs[i] = rapid.SliceOfN(rapid.Float32Range(-1e6, 1e6), n, n).Draw(t, "vector")
	}
	return vs
}

func clone(v Vector) Vector { return append(Vector(nil), v...) }

func TestArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vs := vectors(t, 3)
		d, x, y := vs[0], vs[1], vs[2]
		a := rapid.Float32Range(-8, 8).Draw(t, "a")
		for _, c := range []struct {
			name string
			run  func(dst Vector)
			want func(i int) float32
		}{
			{"Add", func(dst Vector) { Add(dst, x) }, func(i int) float32 { return d[i] + x[i] }},
			{"Sub", func(dst Vector) { Sub(dst, x) }, func(i int) float32 { return d[i] - x[i] }},
			{"Axpy", func(dst Vector) { Axpy(dst, a, x) }, func(i int) float32 { return d[i] + float32(a*x[i]) }},
			{"Scale", func(dst Vector) { Scale(dst, a) }, func(i int) float32 { return d[i] * a }},
			{"ScaledDifference", func(dst Vector) { ScaledDifference(dst, a, x, y) },
				func(i int) float32 { return a * (x[i] - y[i]) }},
		} {
			dst := clone(d)
			c.run(dst)
			for i, got := range dst {
				if got != c.want(i) {
					t.Fatalf("%s: value %d is %v, want %v", c.name, i, got, c.want(i))
				}
			}
		}
	})
}

func TestReductions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vs := vectors(t, 2)
		x, y := vs[0], vs[1]
		var squares, distance float64
		for i := range x {
			a, b := float64(x[i]), float64(y[i])
			squares, distance = squares+a*a, distance+(a-b)*(a-b)
		}
		for _, c := range []struct {
			name                 string
			got, want, magnitude float64
		}{
			{"SumSquares", SumSquares(x), squares, squares},
			{"Norm2", Norm2(x), math.Sqrt(squares), math.Sqrt(squares)},
			{"SquaredDistance", SquaredDistance(x, y), distance, distance},
		} {
			if !(math.Abs(c.got-c.want) <= 1e-12*c.magnitude) {
				t.Fatalf("%s is %v, want %v", c.name, c.got, c.want)
			}
		}
	})
}

func TestMaxAbsAndFinite(t *testing.T) {
	inf, nan := float32(math.Inf(-1)), float32(math.NaN())
	for _, c := range []struct {
		x      Vector
		maxAbs float32
		finite bool
	}{
		{nil, 0, true},
		{Vector{1, -3, 2}, 3, true},
		{Vector{1, inf}, -inf, false},
		{Vector{nan, 1, inf}, nan, false},
	} {
		if got := MaxAbs(c.x); got != c.maxAbs && !(got != got && c.maxAbs != c.maxAbs) {
			t.Errorf("MaxAbs(%v) = %v", c.x, got)
		}
		if Finite(c.x) != c.finite {
			t.Errorf("Finite(%v) = %v", c.x, !c.finite)
		}
	}
}

// TestIdentical: bit by bit, whatever the bits mean.
func TestIdentical(t *testing.T) {
	nan, zero := float32(math.NaN()), float32(0)
	for _, c := range []struct {
		a, b Vector
		want bool
	}{
		{nil, Vector{}, true},
		{Vector{1, 2}, Vector{1, 2}, true},
		{Vector{1, 2}, Vector{1, 3}, false},
		{Vector{1, 2}, Vector{1}, false},
		{Vector{nan}, Vector{nan}, true},
		{Vector{zero}, Vector{float32(math.Copysign(0, -1))}, false},
	} {
		if got := Identical(c.a, c.b); got != c.want {
			t.Errorf("Identical(%v, %v) is %v", c.a, c.b, got)
		}
	}
}

func TestUnequalLengthsPanic(t *testing.T) {
	a, b := make(Vector, 3), make(Vector, 4)
	for name, call := range map[string]func(){
		"Add":              func() { Add(b, a) },
		"Sub":              func() { Sub(a, b) },
		"Axpy":             func() { Axpy(a, 1, b) },
		"ScaledDifference": func() { ScaledDifference(a, 1, a, b) },
		"SquaredDistance":  func() { SquaredDistance(b, a) },
		"MomentumRates":    func() { MomentumRates{}.Delta(a, a, a, b) },
		"AdamWRates":       func() { AdamWRates{}.Delta(a, a, b, a, a) },
		"putBytes":         func() { putBytes(make([]byte, 13), a) },
		"FromBytes":        func() { FromBytes(a, make([]byte, 11)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text, ok := recover().(string); !ok || !strings.Contains(text, name) {
					t.Errorf("panic %q does not name %s", text, name)
				}
			}()
			call()
		})
	}
}

func TestVectorsDoNotAllocate(t *testing.T) {
	x, y, z := make(Vector, 1000), make(Vector, 1000), make(Vector, 1000)
	code := make([]byte, ValueSize*len(x))
	allocs := testing.AllocsPerRun(10, func() {
		Add(x, y)
		Axpy(x, 2, y)
		ScaledDifference(z, 0.5, x, y)
		_ = SquaredDistance(x, z)
		MomentumRates{Rate: 0.1, Momentum: 0.9}.Delta(z, y, z, x)
		AdamWRates{Rate: 0.1, Beta1: 0.9, Beta2: 0.999, Step: 3}.Delta(z, y, x, z, x)
		putBytes(code, x)
		FromBytes(y, code)
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
