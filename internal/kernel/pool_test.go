package kernel

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMaxPoolEqualsTheTwin, bit for bit and around the slices, for every number of
// channels that leaves another remainder.
func TestMaxPoolEqualsTheTwin(t *testing.T) {
	twin := plainPictures()
	onAllPictures(t, func(t *testing.T, v pictureVariant, _ bool) {
		for channels := 1; channels <= 70; channels++ {
			g := Grid{Rows: 2, Cols: 1 + channels%4, Channels: channels, Stride: 2}
			g.Line = 2*g.Cols*channels + channels%3
			random := rand.New(rand.NewPCG(4, uint64(channels)))
			x := normal(t, random, 3*g.Line+2*g.Cols*channels)
			for i := range x {
				switch x[i] = float32(math.Round(float64(x[i]))); random.IntN(30) {
				case 0:
					x[i] = float32(math.NaN())
				case 1:
					x[i] = float32(math.Copysign(0, -1))
				}
			}
			size := g.Rows * g.Cols * channels
			got, check := guarded(t, make([]float32, size))
			plain, checkPlain := guarded(t, make([]float32, size))
			back, checkBack := guarded(t, slices.Clone(x))
			want, wantBack := make([]float32, size), slices.Clone(x)
			places, wantPlaces := bytes.Repeat([]byte{9}, size+1), bytes.Repeat([]byte{9}, size+1)
			part := g.pooled()
			g.parts(part, func(y, from int, part grid) {
				v.maxPoolPlaces(got[y:], places[y:size:size], x[from:], part)
				twin.maxPoolPlaces(want[y:], wantPlaces[y:size:size], x[from:], part)
				v.maxPool(plain[y:], x[from:], part)
				v.maxPoolGradient(back[from:], wantPlaces[y:size:size], want[y:], part)
				twin.maxPoolGradient(wantBack[from:], wantPlaces[y:size:size], want[y:], part)
			})
			sameBits(t, "MaxPool", got, func(i int) float64 { return float64(want[i]) })
			sameBits(t, "MaxPool without places", plain, func(i int) float64 { return float64(want[i]) })
			sameBits(t, "MaxPoolGradient", back, func(i int) float64 { return float64(wantBack[i]) })
			if !bytes.Equal(places, wantPlaces) {
				t.Errorf("places %v, want %v", places, wantPlaces)
			}
			for _, check := range []func(){check, checkPlain, checkBack} {
				check()
			}
			if t.Failed() {
				t.Fatalf("%+v", g)
			}
		}
	})
}

// TestPicturesInPieces: what several calls work on is the same as what one does.
func TestPicturesInPieces(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	const side, channels = 70, 16
	x := normal(t, random, (side+2)*(side+2)*channels)
	w, y := normal(t, random, 9*channels*16), normal(t, random, side*side*16)
	c := Windows{
		Rows: side, Cols: side, Taps: 3 * channels, Line: (side + 2) * channels, XPixel: channels,
		XRow: (side + 2) * channels, YPixel: 16, YRow: side * 16,
	}
	if c.Rows*c.Cols*3*c.Taps <= 2*convolvePiece {
		t.Fatal("the picture is too small")
	}
	got, want := make([]float32, len(y)), make([]float32, len(y))
	Convolve16(got, x, w, c)
	convolve16(want, x, w, c.over(side, side, convolveRun(16)))
	if !slices.Equal(got, want) {
		t.Error("Convolve16 in pieces differs")
	}
	gradient, wantGradient := slices.Clone(w), slices.Clone(w)
	ConvolveGradient16(gradient, x, y, c)
	for line := range windowLines {
		convolveGradient16Go(wantGradient[line*c.Taps*16:], x[line*c.Line:], y, c.over(side, c.Taps, longestRun))
	}
	for i, v := range gradient {
		if math.Abs(float64(v-wantGradient[i])) > 1e-2 {
			t.Fatalf("ConvolveGradient16 in pieces: value %d is %v, want %v", i, v, wantGradient[i])
		}
	}
	g := Grid{Rows: side, Cols: side, Channels: channels, Line: (side + 2) * channels, Stride: 1}
	part := g.deep()
	part.rows, part.cols, part.channels, part.line = side, side, channels, floatBytes*g.Line
	Depthwise(got, x, w, g)
	depthwise(want, x, w, part)
	if !slices.Equal(got, want) {
		t.Error("Depthwise in pieces differs")
	}
}

// TestPicturesOutOfBounds: a picture that is smaller than the windows on it is
// refused before assembly could read beyond it.
func TestPicturesOutOfBounds(t *testing.T) {
	const side = 4
	x, y, w := make([]float32, 6*6*3), make([]float32, 16*16), make([]float32, 9*3*16)
	c := Windows{Rows: side, Cols: side, Taps: 9, Line: 18, XPixel: 3, XRow: 18, YPixel: 16, YRow: 64}
	g := Grid{Rows: side, Cols: side, Channels: 3, Line: 18, Stride: 1}
	half := Grid{Rows: 3, Cols: 3, Channels: 3, Line: 18}
	places := make([]byte, 27)
	for name, call := range map[string]func(x, y, w []float32){
		"Convolve16":         func(x, y, w []float32) { Convolve16(y, x, w, c) },
		"ConvolveGradient16": func(x, y, w []float32) { ConvolveGradient16(w, x, y, c) },
		"Depthwise":          func(x, y, w []float32) { Depthwise(y[:len(y)-208], x, w[:len(w)-405], g) },
		"DepthwiseGradient":  func(x, y, w []float32) { DepthwiseGradient(w[:len(w)-405], x, y[:len(y)-208], g) },
		"MaxPool":            func(x, y, w []float32) { MaxPool(y[:len(y)-229], places[:len(w)-405], x, half) },
		"MaxPoolGradient":    func(x, y, w []float32) { MaxPoolGradient(x, places[:len(w)-405], y[:len(y)-229], half) },
	} {
		call(x, y, w)
		for what, short := range map[string]func(){
			"x": func() { call(x[:len(x)-1:len(x)-1], y, w) },
			"y": func() { call(x, y[:len(y)-1:len(y)-1], w) },
			"w": func() { call(x, y, w[:len(w)-1:len(w)-1]) },
		} {
			if !panics(short) {
				t.Errorf("%s accepts a %s that is too short", name, what)
			}
		}
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}
