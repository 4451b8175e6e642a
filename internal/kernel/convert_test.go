package kernel

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// naiveBF16 rounds by looking for the nearest of the two neighbours in float64,
// where the value beyond the largest finite one is 2^128.
func naiveBF16(x float32) uint16 {
	b := math.Float32bits(x)
	low := uint16(b >> 16)
	switch {
	case math.IsNaN(float64(x)):
		return low | 0x40
	case math.IsInf(float64(x), 0):
		return low
	}
	value := func(code uint16) float64 {
		if code&0x7fff == 0x7f80 {
			return 0x1p128
		}
		return math.Abs(float64(math.Float32frombits(uint32(code) << 16)))
	}
	below := math.Abs(float64(x)) - value(low)
	above := value(low+1) - math.Abs(float64(x))
	if above < below || above == below && low&1 == 1 {
		return low + 1
	}
	return low
}

func TestBF16EncodeEqualsTheLoop(t *testing.T) {
	forAll(t, func(t *testing.T, v variant, n int, random *rand.Rand) {
		x, checkX := guarded(t, values(random, n))
		for i := range x { // halfway cases and their neighbours
			if random.IntN(2) == 0 {
				b := math.Float32bits(x[i])&0xffff0000 | 0x7fff + random.Uint32N(3)
				x[i] = math.Float32frombits(b)
			}
		}
		all := bytes.Repeat([]byte{0xa5}, 2*n+6)
		v.bf16Encode(all[3:3+2*n], x)
		checkX()
		for i := range x {
			if got, want := binary.LittleEndian.Uint16(all[3+2*i:]), naiveBF16(x[i]); got != want {
				t.Errorf("code of %v (%#x) is %#x, want %#x", x[i], math.Float32bits(x[i]), got, want)
			}
		}
		if !bytes.Equal(all[:3], []byte{0xa5, 0xa5, 0xa5}) || !bytes.Equal(all[3+2*n:], all[:3]) {
			t.Error("bytes around the code were overwritten")
		}
	})
}

func TestBF16Edges(t *testing.T) {
	for _, c := range []struct {
		name string
		bits uint32
		code uint16
	}{
		{"negative zero", 0x80000000, 0x8000},
		{"tie to even, down", 0x3f808000, 0x3f80},
		{"tie to even, up", 0x3f818000, 0x3f82},
		{"smallest subnormal", 0x00000001, 0x0000},
		{"subnormal tie", 0x00018000, 0x0002},
		{"largest that stays finite", 0x7f7f7fff, 0x7f7f},
		{"overflow", 0x7f7f8000, 0x7f80},
		{"infinity", 0xff800000, 0xff80},
		{"quiet NaN", 0x7fc12345, 0x7fc1},
		{"NaN with its payload in the lost half", 0x7f800001, 0x7fc0},
		{"NaN that a carry would turn to zero", 0xffffffff, 0xffff},
	} {
		onAll(t, func(t *testing.T, v variant) {
			x := slices.Repeat([]float32{math.Float32frombits(c.bits)}, 37) // every place of a vector, and a remainder
			code := make([]byte, 2*len(x))
			v.bf16Encode(code, x)
			for at := range x {
				if got := binary.LittleEndian.Uint16(code[2*at:]); got != c.code {
					t.Errorf("%s: %#x at %d becomes %#x, want %#x", c.name, c.bits, at, got, c.code)
				}
			}
		})
	}
}

// TestBF16AllCodes: decoding is exact, and encoding gives the code back, for
// every code (a signalling NaN comes back quiet).
func TestBF16AllCodes(t *testing.T) {
	code := make([]byte, 2<<16)
	for i := range 1 << 16 {
		binary.LittleEndian.PutUint16(code[2*i:], uint16(i))
	}
	onAll(t, func(t *testing.T, v variant) {
		x := make([]float32, 1<<16)
		v.bf16Decode(x, code)
		back := make([]byte, len(code))
		v.bf16Encode(back, x)
		for i, value := range x {
			if math.Float32bits(value) != uint32(i)<<16 {
				t.Fatalf("%#x decodes to %#x", i, math.Float32bits(value))
			}
			want := uint16(i)
			if math.IsNaN(float64(value)) {
				want |= 0x40
			}
			if got := binary.LittleEndian.Uint16(back[2*i:]); got != want {
				t.Fatalf("%#x comes back as %#x", i, got)
			}
		}
	})
}

func TestBF16Monotonic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Float32().Draw(t, "a"), rapid.Float32().Draw(t, "b")
		code, back := make([]byte, 4), make([]float32, 2)
		BF16Encode(code, []float32{a, b})
		BF16Decode(back, code)
		if a <= b && !(back[0] <= back[1]) {
			t.Fatalf("%v <= %v, but their codes are %v and %v", a, b, back[0], back[1])
		}
	})
}

func TestDecodeLengths(t *testing.T) {
	forAll(t, func(t *testing.T, v variant, n int, random *rand.Rand) {
		code := make([]byte, 2*n)
		for i := range code {
			code[i] = byte(random.Uint32())
		}
		for _, c := range []struct {
			name   string
			decode func(dst []float32, code []byte)
			want   func(code uint16) float64
		}{
			{"BF16Decode", v.bf16Decode, func(c uint16) float64 { return float64(math.Float32frombits(uint32(c) << 16)) }},
			{"FP16Decode", v.fp16Decode, naiveHalf},
		} {
			dst, check := guarded(t, make([]float32, n))
			c.decode(dst, code)
			sameBits(t, c.name, dst, func(i int) float64 { return c.want(binary.LittleEndian.Uint16(code[2*i:])) })
			check()
		}
	})
}

// naiveHalf is the definition of IEEE 754 binary16.
func naiveHalf(h uint16) float64 {
	exponent, fraction := int(h>>10&31), float64(h&1023)
	var x float64
	switch exponent {
	case 0:
		x = math.Ldexp(fraction, -24)
	case 31:
		x = math.Inf(1)
		if fraction != 0 {
			return math.NaN()
		}
	default:
		x = math.Ldexp(1024+fraction, exponent-25)
	}
	if h>>15 == 1 {
		x = -x
	}
	return x
}

func TestFP16AllCodes(t *testing.T) {
	code, x := make([]byte, 2<<16), make([]float32, 1<<16)
	for i := range 1 << 16 {
		binary.LittleEndian.PutUint16(code[2*i:], uint16(i))
	}
	onAll(t, func(t *testing.T, v variant) {
		v.fp16Decode(x, code)
		sameBits(t, "FP16Decode", x, func(i int) float64 { return naiveHalf(uint16(i)) })
	})
}

// TestCodesNotFinite compares the checks on bytes with the values that the
// bytes mean, for one bad code at each place.
func TestCodesNotFinite(t *testing.T) {
	forAll(t, func(t *testing.T, v variant, n int, random *rand.Rand) {
		if n > 40 {
			return
		}
		x := values(random, n)
		wide, narrow := make([]byte, 4*n), make([]byte, 2*n)
		for i, value := range x {
			binary.LittleEndian.PutUint32(wide[4*i:], math.Float32bits(value))
			binary.LittleEndian.PutUint16(narrow[2*i:], uint16(math.Float32bits(value)>>16))
		}
		if !v.float32Finite(wide) || !v.bf16Finite(narrow) {
			t.Error("finite codes are refused")
		}
		for i := range x {
			for _, bad := range []uint16{0x7f80, 0xff80, 0x7fc0, 0xffff} {
				kept := [2]uint16{binary.LittleEndian.Uint16(wide[4*i+2:]), binary.LittleEndian.Uint16(narrow[2*i:])}
				binary.LittleEndian.PutUint16(wide[4*i+2:], bad)
				binary.LittleEndian.PutUint16(narrow[2*i:], bad)
				if v.float32Finite(wide) || v.bf16Finite(narrow) {
					t.Errorf("%#x at %d is finite", bad, i)
				}
				binary.LittleEndian.PutUint16(wide[4*i+2:], kept[0])
				binary.LittleEndian.PutUint16(narrow[2*i:], kept[1])
			}
		}
	})
}
