package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// fusedAdd is a*b+c rounded once: the product is exact in float64, and a sum whose
// rounding is kept in its last bit (odd if inexact) rounds to float32 as the exact
// one does.
func fusedAdd(a, b, c float32) float32 {
	p, d := float64(a)*float64(b), float64(c)
	sum := p + d
	back := sum - p
	if rest := (p - (sum - back)) + (d - back); rest != 0 && math.Float64bits(sum)&1 == 0 {
		toward := math.Inf(1)
		if rest < 0 {
			toward = math.Inf(-1)
		}
		sum = math.Nextafter(sum, toward)
	}
	return float32(sum)
}

func TestFusedAdd(t *testing.T) {
	// 1 + 2^-12 squared, less 1: its last bit is lost if the product is rounded.
	const a = 1 + 0x1p-12
	if got, want := fusedAdd(a, a, -1), float32(0x1p-11+0x1p-24); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	// A half of the last bit, and something below it that float64 cannot hold.
	if got, want := fusedAdd(0x1p-30, 0x1p-30, 1+0x1p-23), float32(1+0x1p-23); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := fusedAdd(0x1p-12, 0x1p-12+0x1p-35, 1), float32(1+0x1p-23); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// chain adds terms as kernels do: fused, or rounding products too.
func chain(fused bool) func(sum, a, b float32) float32 {
	if fused {
		return func(sum, a, b float32) float32 { return fusedAdd(a, b, sum) }
	}
	return func(sum, a, b float32) float32 { return sum + float32(a*b) }
}

func normal(t *testing.T, random *rand.Rand, n int) []float32 {
	x := beforePage(t, n)
	for i := range x {
		x[i] = float32(random.NormFloat64())
	}
	return x
}

// TestConvolutionEqualsTheLoop for every length of a row: the sums are those of the
// loop, to the bit, with products rounded by the plain variant only.
func TestConvolutionEqualsTheLoop(t *testing.T) {
	onAllPictures(t, func(t *testing.T, v pictureVariant, fused bool) {
		for cols := 1; cols <= 2*longestRun+3; cols++ {
			for _, taps := range []int{3, 6, 9, 21} {
				for _, step := range []int{1, 2} {
					checkConvolution(t, v, chain(fused), cols, taps, step)
					if t.Failed() {
						t.Fatalf("%d windows of %d taps, step %d", cols, taps, step)
					}
				}
			}
		}
	})
}

func checkConvolution(t *testing.T, v pictureVariant, add func(sum, a, b float32) float32, cols, taps, step int) {
	const rows = 2
	random := rand.New(rand.NewPCG(uint64(cols), uint64(taps)))
	for _, k := range []struct {
		channels, longest int
		forward, gradient func(a, x, b []float32, c windows)
	}{
		{16, v.run16, v.convolve16, v.gradient16},
		{8, longestRun, v.convolve8, v.gradient8},
	} {
		pixel := step * taps / windowLines
		c := Windows{
			Rows: rows, Cols: cols, Taps: taps, XPixel: pixel, Line: cols*pixel + taps + 1,
			YPixel: k.channels + 3, YRow: cols*(k.channels+3) + 2,
		}
		c.XRow = step * c.Line
		x := normal(t, random, (rows-1)*c.XRow+(cols-1)*c.XPixel+2*c.Line+taps)
		w0 := normal(t, random, windowLines*taps*k.channels)
		y0 := normal(t, random, (rows-1)*c.YRow+(cols-1)*c.YPixel+k.channels)
		want, wantW := slices.Clone(y0), slices.Clone(w0)
		for j := range k.channels {
			for r := range rows {
				for p := range cols {
					sum := float32(0)
					for i := range windowLines * taps {
						sum = add(sum, x[r*c.XRow+p*c.XPixel+i/taps*c.Line+i%taps], w0[i*k.channels+j])
					}
					want[r*c.YRow+p*c.YPixel+j] = sum
				}
			}
			for i := range windowLines * taps {
				sum := float32(0)
				for r := range rows {
					for p := range cols {
						sum = add(sum, x[r*c.XRow+p*c.XPixel+i/taps*c.Line+i%taps], y0[r*c.YRow+p*c.YPixel+j])
					}
				}
				wantW[i*k.channels+j] += sum
			}
		}
		w, checkW := guarded(t, w0)
		y, checkY := guarded(t, y0)
		for line := range windowLines {
			k.gradient(w[line*taps*k.channels:], x[line*c.Line:], y0, c.over(rows, taps, k.longest))
		}
		k.forward(y, x, w0, c.over(rows, cols, k.longest))
		sameBits(t, "sums", y, func(i int) float64 { return float64(want[i]) })
		sameBits(t, "gradient", w, func(i int) float64 { return float64(wantW[i]) })
		checkW()
		checkY()
	}
}

func TestDepthwiseEqualsTheLoop(t *testing.T) {
	onAllPictures(t, func(t *testing.T, v pictureVariant, fused bool) {
		for channels := 1; channels <= 70; channels++ {
			g := Grid{Rows: 2, Cols: 1 + channels%14, Channels: channels, Stride: 1 + channels%2}
			g.Line = ((g.Cols-1)*g.Stride+windowLines)*channels + 1
			checkDepthwise(t, v, chain(fused), g)
			if t.Failed() {
				t.Fatalf("%+v", g)
			}
		}
	})
}

func checkDepthwise(t *testing.T, v pictureVariant, add func(sum, a, b float32) float32, g Grid) {
	random := rand.New(rand.NewPCG(3, uint64(g.Channels)))
	x := normal(t, random, ((g.Rows-1)*g.Stride+2)*g.Line+((g.Cols-1)*g.Stride+windowLines)*g.Channels)
	w0, y0 := normal(t, random, depthTaps*g.Channels), normal(t, random, g.Rows*g.Cols*g.Channels)
	want, wantW := slices.Clone(y0), slices.Clone(w0)
	at := func(r, p, tap, c int) float32 {
		return x[(r*g.Stride+tap/3)*g.Line+(p*g.Stride+tap%3)*g.Channels+c]
	}
	for c := range g.Channels {
		for r := range g.Rows {
			for p := range g.Cols {
				sum := float32(0)
				for tap := range depthTaps {
					sum = add(sum, at(r, p, tap, c), w0[tap*g.Channels+c])
				}
				want[(r*g.Cols+p)*g.Channels+c] = sum
			}
			for tap := range depthTaps {
				sum := float32(0)
				for p := range g.Cols {
					sum = add(sum, at(r, p, tap, c), y0[(r*g.Cols+p)*g.Channels+c])
				}
				wantW[tap*g.Channels+c] += sum
			}
		}
	}
	w, checkW := guarded(t, w0)
	y, checkY := guarded(t, y0)
	part := g.deep()
	g.parts(part, func(to, from int, part grid) {
		v.depthwise(y[to:], x[from:], w0, part)
		v.depthGradient(w, x[from:], y0[to:], part)
	})
	sameBits(t, "sums", y, func(i int) float64 { return float64(want[i]) })
	sameBits(t, "gradient", w, func(i int) float64 { return float64(wantW[i]) })
	checkW()
	checkY()
}
