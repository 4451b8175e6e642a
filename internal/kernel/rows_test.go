package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRectifyEqualsTheLoop: negative values become 0, NaN and -0 stay.
func TestRectifyEqualsTheLoop(t *testing.T) {
	forAll(t, func(t *testing.T, v variant, n int, random *rand.Rand) {
		x0, grad0 := values(random, n), values(random, n)
		for i := range x0 {
			if random.IntN(9) == 0 {
				x0[i] = float32(math.NaN())
			}
		}
		x, checkX := guarded(t, x0)
		grad, checkGrad := guarded(t, grad0)
		v.rectifyGradient(grad, x)
		v.rectify(x)
		sameBits(t, "Rectify", x, func(i int) float64 {
			if x0[i] < 0 {
				return 0
			}
			return float64(x0[i])
		})
		sameBits(t, "RectifyGradient", grad, func(i int) float64 {
			if x0[i] <= 0 {
				return 0
			}
			return float64(grad0[i])
		})
		checkX()
		checkGrad()
	})
}

// TestReLU6EqualsTheLoop: values end at 0 and 6, where the gradient is 0; NaN and -0 stay.
func TestReLU6EqualsTheLoop(t *testing.T) {
	forAll(t, func(t *testing.T, v variant, n int, random *rand.Rand) {
		x0, grad0 := values(random, n), values(random, n)
		some := []float32{0, 6, 3, 5.9999995, 6.0000005, 1e30, -1e-30, float32(math.NaN()), float32(math.Inf(1))}
		for i := range x0 {
			if k := random.IntN(2 * len(some)); k < len(some) {
				x0[i] = some[k]
			}
		}
		x, checkX := guarded(t, x0)
		y, checkY := guarded(t, x0)
		grad, checkGrad := guarded(t, grad0)
		v.relu6(y, x)
		sameBits(t, "ReLU6", y, func(i int) float64 {
			if x0[i] < 0 {
				return 0
			}
			return math.Min(float64(x0[i]), 6)
		})
		v.relu6Gradient(grad, x)
		sameBits(t, "ReLU6Gradient", grad, func(i int) float64 {
			if x0[i] <= 0 || x0[i] >= 6 {
				return 0
			}
			return float64(grad0[i])
		})
		checkX()
		checkY()
		checkGrad()
	})
}

// forRows runs test for every variant, for rows of every length to maxLength and
// some numbers of them.
func forRows(t *testing.T, test func(t *testing.T, v pictureVariant, rows, n int, random *rand.Rand)) {
	t.Helper()
	onAllPictures(t, func(t *testing.T, v pictureVariant, _ bool) {
		for n := 1; n <= maxLength; n++ {
			for _, rows := range []int{1, 2, 7} {
				test(t, v, rows, n, rand.New(rand.NewPCG(uint64(rows), uint64(n))))
				if t.Failed() {
					t.Fatalf("at %d rows of %d", rows, n)
				}
			}
		}
	})
}

func TestRowsEqualTheLoops(t *testing.T) {
	forRows(t, func(t *testing.T, v pictureVariant, rows, n int, random *rand.Rand) {
		x0, y0 := values(random, rows*n), values(random, rows*n)
		a0, b0, c0 := values(random, n), values(random, n), values(random, n)
		f := func(x []float32, i int) float64 { return float64(x[i%len(x)]) }
		for _, c := range []struct {
			name string
			run  func(x, y, a, b, c []float32)
			want func(i int) float64
		}{
			{"AddRows", func(x, _, a, _, _ []float32) { v.addRows(x, a, rows) },
				func(i int) float64 { return f(x0, i) + f(a0, i) }},
			{"AddRowsRectify", func(x, _, a, _, _ []float32) { v.addRowsRectify(x, a, rows) },
				func(i int) float64 { return max(0, round(f(x0, i)+f(a0, i))) }},
			{"ScaleRows", func(x, _, a, b, _ []float32) { v.scaleRows(x, x, a, b, rows) },
				func(i int) float64 { return round(f(x0, i)*f(a0, i)) + f(b0, i) }},
			{"ScaleRowsRectify", func(x, _, a, b, _ []float32) { v.scaleRowsRectify(x, x, a, b, rows) },
				func(i int) float64 { return max(0, round(f(x0, i)*f(a0, i))+f(b0, i)) }},
			{"CombineRows", func(x, y, a, b, c []float32) { v.combineRows(x, x, y, a, b, c, rows) },
				func(i int) float64 {
					return round(round(f(x0, i)*f(a0, i))+round(f(y0, i)*f(b0, i))) + f(c0, i)
				}},
		} {
			x, checkX := guarded(t, x0)
			y, checkY := guarded(t, y0)
			a, checkA := guarded(t, a0)
			b, checkB := guarded(t, b0)
			shift, checkShift := guarded(t, c0)
			c.run(x, y, a, b, shift)
			sameNumbers(t, c.name, x, c.want)
			for _, check := range []func(){checkX, checkY, checkA, checkB, checkShift} {
				check()
			}
		}
	})
}

// sameNumbers is sameBits for which 0 is -0.
func sameNumbers(t *testing.T, what string, got []float32, want func(i int) float64) {
	t.Helper()
	for i, g := range got {
		if w := float32(want(i)); g != w && !(g != g && w != w) {
			t.Errorf("%s: value %d is %v, want %v", what, i, g, w)
			return
		}
	}
}

// TestSumsOfRowsEqualTheLoops: sums are in float64 and in the order of the rows, so
// that they have the same bits everywhere.
func TestSumsOfRowsEqualTheLoops(t *testing.T) {
	forRows(t, func(t *testing.T, v pictureVariant, rows, n int, random *rand.Rand) {
		x, y := beforePage(t, rows*n), beforePage(t, rows*n)
		for i := range x {
			x[i], y[i] = float32(random.NormFloat64()), float32(random.NormFloat64())
		}
		sum32, check := guarded(t, slices.Repeat([]float32{0.5}, n))
		sum, product := slices.Repeat([]float64{1, 7}, n)[:n+1], slices.Repeat([]float64{2, 7}, n)[:n+1]
		wantSum, wantProduct := slices.Clone(sum), slices.Clone(product)
		total := make([]float64, n)
		for i, a := range x {
			total[i%n] += float64(a)
			wantSum[i%n] += float64(a)
			wantProduct[i%n] += float64(float64(a) * float64(y[i]))
		}
		v.sumRows(sum32, x, rows)
		v.sumProductRows(sum[:n], product[:n], x, y, rows)
		squareSum, square := slices.Clone(sum), slices.Clone(product)
		wantSquareSum, wantSquare := slices.Clone(sum), slices.Clone(product)
		v.sumSquareRows(squareSum[:n], square[:n], x, rows)
		sumProductRowsGo(wantSquareSum[:n], wantSquare[:n], x, x, rows)
		if !slices.Equal(squareSum, wantSquareSum) || !slices.Equal(square, wantSquare) {
			t.Errorf("SumSquareRows: %v and %v, want %v and %v", squareSum, square, wantSquareSum, wantSquare)
		}
		sameBits(t, "SumRows", sum32, func(i int) float64 { return float64(float32(total[i]) + 0.5) })
		if !slices.Equal(sum, wantSum) || !slices.Equal(product, wantProduct) {
			t.Errorf("SumProductRows: %v and %v, want %v and %v", sum, product, wantSum, wantProduct)
		}
		check()
	})
}

// TestRowsInPieces: a matrix that several calls work on is done to its end, and
// broken rows are refused.
func TestRowsInPieces(t *testing.T) {
	const n, rows = 24, 3*rowsPiece/24 + 5
	row, sum := slices.Repeat([]float32{1}, n), make([]float32, n)
	x := make([]float32, n*rows)
	AddRows(x, row)
	AddRowsRectify(x, row)
	ScaleRows(x, x, row, row)
	CombineRows(x, x, x, row, row, row)
	SumRows(sum, x)
	sums, products := make([]float64, n), make([]float64, n)
	SumProductRows(sums, products, x, x)
	for c := range n {
		if got, want := fmt.Sprint(sum[c], sums[c], products[c]), fmt.Sprint(7*rows, 7*rows, 49*rows); got != want {
			t.Fatalf("column %d: %s, want %s", c, got, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("broken rows were accepted")
		}
	}()
	AddRows(x[1:], row)
}
