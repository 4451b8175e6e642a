package coding

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/tensor"
)

func allSteps() []Steps { return []Steps{{1}, {3}, {4}, {8}} }

// drawVector draws up to three blocks of values, some of which are far larger than
// others, or half a step of an 8, 4 or 3 bit code.
func drawVector(t *rapid.T) tensor.Vector {
	n := rapid.SampledFrom([]int{0, 1, 2, 3, 7, 8, 9, 31, 100, BlockLen - 1, BlockLen, BlockLen + 1, 2*BlockLen + 76}).Draw(t, "n")
	scale := rapid.Float32Range(0x1p-60, 0x1p60).Draw(t, "scale")
	some := rapid.SliceOfN(rapid.OneOf(
		rapid.Float32Range(-1, 1), rapid.SampledFrom([]float32{0, 1, -1, 1e-3, 0.5 / 127, 0.5 / 7, 0.5 / 3, 0.51 / 3, -0.501 / 7, -0.5001 / 127}),
	), 1, 40).Draw(t, "values")
	x := make(tensor.Vector, n)
	for i := range x {
		if v := some[(i*i+i/7)%len(some)]; v*v > 0x1p-40 { // steps may be too small to be coded
			x[i] = scale * v
		}
	}
	return x
}

func decoded(t interface{ Fatal(...any) }, c Coder, code []byte, n int) tensor.Vector {
	x := make(tensor.Vector, n)
	if err := c.Decode(x, code, nil); err != nil {
		t.Fatal(err)
	}
	return x
}

// TestStepsAdd shows that adding a code in one pass is decoding and then adding it, or
// subtracting it, bit for bit.
func TestStepsAdd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawVector(t)
		for _, c := range allSteps() {
			coded := code(c, x)
			values := decoded(t, c, coded, len(x))
			for sign, op := range map[float32]func(dst, x tensor.Vector){1: tensor.Add, -1: tensor.Sub} {
				got, want := slices.Clone(x), slices.Clone(x)
				c.Add(got, coded, sign)
				if op(want, values); !slices.Equal(got, want) {
					t.Fatalf("%s times %g: %v, want %v", c.name(), sign, got, want)
				}
			}
		}
	})
}

// TestStepsFormula compares each value with the formula of docs/CODECS.md, in
// float64.
func TestStepsFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawVector(t)
		for _, c := range allSteps() {
			got := decoded(t, c, code(c, x), len(x))
			for i, block := range slices.Collect(slices.Chunk(x, BlockLen)) {
				most, sum := 0.0, 0.0
				for _, v := range block {
					most, sum = max(most, math.Abs(float64(v))), sum+math.Abs(float64(v))
				}
				step := most / float64(c.most())
				if c.bits == 1 {
					step = sum / float64(len(block))
				}
				for j, v := range block {
					want, slack := step*math.RoundToEven(float64(v)/step), step*(0.5+1e-4)
					if c.bits == 1 {
						want, slack = math.Copysign(step, float64(v)), 0
					}
					value := float64(got[i*BlockLen+j])
					if most == 0 && value != 0 || most > 0 && math.Abs(value-want) > step*1e-6 && !(math.Abs(value-float64(v)) <= slack) {
						t.Fatalf("%s: %v becomes %v, want %v in steps of %v", c.name(), v, value, want, step)
					}
				}
			}
		}
	})
}

// TestStepsContract: what a code leaves over is shorter than what it codes, so that
// exchanges converge; and the code is no longer than Stretch says, nor than Shrink
// makes it.
func TestStepsContract(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawVector(t)
		share := rapid.Float64Range(0, 1).Draw(t, "share")
		for _, c := range allSteps() {
			coded := code(c, x)
			got := decoded(t, c, coded, len(x))
			norm, length := tensor.Norm2(x), tensor.Norm2(got)
			if left := math.Sqrt(tensor.SquaredDistance(x, got)); norm > 0 && !(left < norm) {
				t.Fatalf("%s: %v of %v is left", c.name(), left, norm)
			}
			if length > c.Stretch()*norm {
				t.Fatalf("%s: norm %v becomes %v, more than %v as much", c.name(), norm, length, c.Stretch())
			}
			if said := math.Sqrt(c.SquaredNorm(coded, len(x))); math.Abs(said-length) > 1e-6*length {
				t.Fatalf("%s: norm %v, said to be %v", c.name(), length, said)
			}
			c.Shrink(coded, len(x), share)
			for i, v := range decoded(t, c, coded, len(x)) {
				if want := share * float64(got[i]); math.Abs(float64(v)) > math.Abs(want)*(1+0x1p-23) || math.Abs(float64(v)-want) > math.Abs(want)*0x1p-22+0x1p-119 {
					t.Fatalf("%s: %v times %v is %v", c.name(), got[i], share, v)
				}
			}
		}
	})
}

// TestStretchIsReached: the bound is no looser than it must be.
func TestStretchIsReached(t *testing.T) {
	for _, c := range allSteps() {
		x := make(tensor.Vector, BlockLen)
		for i := range x {
			x[i] = math.Nextafter32(0.5, 1)
		}
		x[100] = c.most()
		stretch := tensor.Norm2(decoded(t, c, code(c, x), len(x))) / tensor.Norm2(x)
		if c.bits > 1 && stretch < 0.999*c.Stretch() {
			t.Errorf("%s: stretched %v times, the bound is %v", c.name(), stretch, c.Stretch())
		}
	}
}

// TestPeaks: exact but for one bit.
func TestPeaks(t *testing.T) {
	x := append(wave(BlockLen, 0), wave(100, 3)...)
	for _, c := range allSteps() {
		peaks := make([]float32, 2)
		c.Peaks(peaks, code(c, x), len(x))
		for i, block := range slices.Collect(slices.Chunk(x, BlockLen)) {
			want := tensor.MaxAbs(block)
			if got := peaks[i]; c.bits > 1 && math.Abs(float64(got-want)) > 1e-6 || got < want {
				t.Errorf("%s: peak %v of block %d, want %v", c.name(), got, i, want)
			}
		}
	}
}

// TestStepsRefuses: scales and padding that no encoder writes.
func TestStepsRefuses(t *testing.T) {
	bitsOf := math.Float32bits
	for _, c := range allSteps() {
		const n = BlockLen + 3
		good := code(c, wave(n, 0))
		at := c.blockSize(BlockLen)
		for _, f := range []struct {
			name string
			do   func(code []byte)
			want error
		}{
			{"scale of -0", func(b []byte) { binary.LittleEndian.PutUint32(b[at:], 1<<31) }, ErrScale},
			{"negative scale", func(b []byte) { binary.LittleEndian.PutUint32(b[at:], bitsOf(-1)) }, ErrScale},
			{"denormal scale", func(b []byte) { binary.LittleEndian.PutUint32(b[at:], 1) }, ErrScale},
			{"scale 0 of numbers that are not", func(b []byte) { binary.LittleEndian.PutUint32(b, 0) }, ErrScale},
			{"infinite scale", func(b []byte) { binary.LittleEndian.PutUint32(b[at:], bitsOf(float32(math.Inf(1)))) }, ErrNotFinite},
			{"scale whose values are infinite", func(b []byte) { binary.LittleEndian.PutUint32(b[at:], bitsOf(0x1p121)) }, ErrNotFinite},
			{"NaN", func(b []byte) { binary.LittleEndian.PutUint32(b, bitsOf(float32(math.NaN()))) }, ErrNotFinite},
			{"padding", func(b []byte) { b[len(b)-1] |= 0x80 }, ErrPadding},
		} {
			if f.want == ErrPadding && c.bits == bytePlane {
				continue
			}
			spoilt := slices.Clone(good)
			f.do(spoilt)
			dst := wave(n, 9)
			if err := c.Decode(dst, spoilt, nil); !errors.Is(err, f.want) || !slices.Equal(dst, wave(n, 9)) {
				t.Errorf("%s, %s: error %v, want %v", c.name(), f.name, err, f.want)
			}
		}
	}
}
