package coding

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/tensor"
)

func mustCodec(t testing.TB, name string) Codec {
	t.Helper()
	c, err := ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// code returns the code of x, from a buffer with stale bytes in it.
func code(c Coder, x tensor.Vector) []byte {
	b := bytes.Repeat([]byte{0xa5}, c.Size(len(x)))
	c.Encode(b, x)
	return b
}

func memory(x tensor.Vector) []byte { return tensor.AppendBytes(nil, x) }

// TestNumbersAreFixed: names and numbers are on the network and in users'
// configuration, so none may change.
func TestNumbersAreFixed(t *testing.T) {
	want := map[string]ID{
		"raw": 1, "bf16": 2, "fp16": 3, "int8": 4,
		"lattice4+1": 16, "lattice4+3": 17, "lattice4+4": 18, "lattice4+8": 19,
		"lattice5+1": 20, "lattice5+3": 21, "lattice5+4": 22, "lattice5+8": 23,
		"lattice6+1": 24, "lattice6+3": 25, "lattice6+4": 26, "lattice6+8": 27,
		"lattice8+1": 28, "lattice8+3": 29, "lattice8+4": 30, "lattice8+8": 31,
	}
	if names := Names(); len(names) != len(want) {
		t.Errorf("codecs %v", names)
	}
	for name, id := range want {
		byName := mustCodec(t, name)
		byID, ok := ByID(id)
		if !ok || byName != byID || byName.ID != id || byName.Name != name {
			t.Errorf("%s is %+v by name, %+v by number %d", name, byName, byID, id)
		}
		if l := byName.Lattice; (l != Lattice{}) != (id >= Lattice4to1) || id >= Lattice4to1 && (name != fmt.Sprintf("lattice%d+%d", l.CodeBits(), l.diff) || byName.Diff != Coder(l.Diff())) {
			t.Errorf("%s has lattice %+v and difference %+v", name, l, byName.Diff)
		}
	}
}

func TestUnknownCodec(t *testing.T) {
	_, err := ByName("zip")
	if !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), `"zip": have raw, bf16`) {
		t.Errorf("error %v", err)
	}
	for _, id := range []ID{0, 5, 15, 32, 255} {
		if c, ok := ByID(id); ok {
			t.Errorf("number %d is %+v", id, c)
		}
	}
}

func TestRawIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := tensor.Vector(rapid.SliceOfN(rapid.Float32Range(-math.MaxFloat32, math.MaxFloat32), 0, 40).Draw(t, "x"))
		got := make(tensor.Vector, len(x))
		if err := Float(Raw).Decode(got, code(Float(Raw), x), nil); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(memory(got), memory(x)) {
			t.Fatalf("%v comes back as %v", x, got)
		}
	})
}

// TestBF16Error: bfloat16 has 8 significant bits, so half a step is at most
// 2^-8 of a normal value; decoded values code to themselves.
func TestBF16Error(t *testing.T) {
	const largest, normal = 0x1.fep127, 0x1p-126
	rapid.Check(t, func(t *rapid.T) {
		x := tensor.Vector(rapid.SliceOfN(rapid.Float32Range(-largest, largest), 0, 40).Draw(t, "x"))
		coded := code(Float(BF16), x)
		got := make(tensor.Vector, len(x))
		if err := Float(BF16).Decode(got, coded, nil); err != nil {
			t.Fatal(err)
		}
		for i := range x {
			want := float64(x[i])
			if diff := math.Abs(float64(got[i]) - want); diff > 0x1p-8*max(math.Abs(want), normal) {
				t.Fatalf("%v comes back as %v", x[i], got[i])
			}
		}
		if again := code(Float(BF16), got); !bytes.Equal(again, coded) {
			t.Fatalf("code % x becomes % x the second time", coded, again)
		}
	})
}

// TestDecodeRefuses: a bad code is refused with its reason, and dst is as it
// was, wherever in the code the fault lies.
func TestDecodeRefuses(t *testing.T) {
	const n = 9
	x := make(tensor.Vector, n)
	for i := range x {
		x[i] = float32(i) - 4
	}
	refuse := func(t *testing.T, c Coder, code []byte, want error) {
		t.Helper()
		dst := slices.Clone(x)
		if err := c.Decode(dst, code, nil); !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
		if !slices.Equal(dst, x) {
			t.Errorf("dst changed to %v", dst)
		}
	}
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			codec := mustCodec(t, name)
			for _, c := range []Coder{codec.Code, codec.Diff} {
				good := code(c, x)
				for _, size := range []int{0, 1, len(good) - 1} {
					refuse(t, c, good[:size], ErrSize)
				}
				refuse(t, c, append(slices.Clone(good), 0), ErrSize)
				refuse(t, c, nil, ErrSize)
				for i := range x {
					for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
						spoilt := slices.Clone(x)
						spoilt[i] = float32(bad)
						refuse(t, c, code(c, spoilt), ErrNotFinite)
					}
				}
			}
		})
	}
}

// TestBF16Overflow: a finite value that rounds to infinity is refused by the
// receiver, as Encode's comment says.
func TestBF16Overflow(t *testing.T) {
	dst := tensor.Vector{1}
	err := Float(BF16).Decode(dst, code(Float(BF16), tensor.Vector{math.MaxFloat32}), nil)
	if !errors.Is(err, ErrNotFinite) {
		t.Errorf("error %v", err)
	}
}

// TestFP16Error: a half has 11 significant bits, and subnormals of 2^-24; decoded
// values code to themselves.
func TestFP16Error(t *testing.T) {
	const largest, normal = 65504, 0x1p-14
	rapid.Check(t, func(t *rapid.T) {
		x := tensor.Vector(rapid.SliceOfN(rapid.Float32Range(-largest, largest), 0, 40).Draw(t, "x"))
		coded := code(Float(FP16), x)
		got := make(tensor.Vector, len(x))
		if err := Float(FP16).Decode(got, coded, nil); err != nil {
			t.Fatal(err)
		}
		for i := range x {
			want := float64(x[i])
			if diff := math.Abs(float64(got[i]) - want); diff > 0x1p-11*max(math.Abs(want), normal) {
				t.Fatalf("%v comes back as %v", x[i], got[i])
			}
		}
		if again := code(Float(FP16), got); !bytes.Equal(again, coded) {
			t.Fatalf("code % x becomes % x the second time", coded, again)
		}
	})
}

// TestFP16Overflow: what rounds to more than the largest half is refused by the
// receiver.
func TestFP16Overflow(t *testing.T) {
	for _, c := range []struct {
		value float32
		want  error
	}{{65519.996, nil}, {65520, ErrNotFinite}, {-65520, ErrNotFinite}, {1e30, ErrNotFinite}} {
		dst := tensor.Vector{1}
		if err := Float(FP16).Decode(dst, code(Float(FP16), tensor.Vector{c.value}), nil); !errors.Is(err, c.want) {
			t.Errorf("%v: error %v, want %v", c.value, err, c.want)
		}
	}
}

func TestDecodeOverReference(t *testing.T) {
	for _, name := range Names() {
		c := mustCodec(t, name).Code
		slice := tensor.Vector{1, 2, 3}
		if err := c.Decode(slice, code(c, tensor.Vector{4, 5, 6}), slice); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want := make(tensor.Vector, 3)
		if err := c.Decode(want, code(c, tensor.Vector{4, 5, 6}), nil); err != nil || !slices.Equal(slice, want) {
			t.Errorf("%s: %v", name, slice)
		}
	}
}

func TestEncodeIntoWrongSizePanics(t *testing.T) {
	for _, name := range []string{rawName, bf16Name, fp16Name, int8Name} {
		c := mustCodec(t, name).Code
		for _, size := range []int{0, c.Size(3) - 1, c.Size(3) + 1} {
			func() {
				defer func() {
					if text, ok := recover().(string); !ok || !strings.Contains(text, name) {
						t.Errorf("%s into %d bytes: panic %q", name, size, text)
					}
				}()
				c.Encode(make([]byte, size), make(tensor.Vector, 3))
			}()
		}
	}
}

func TestCodersDoNotAllocate(t *testing.T) {
	x := wave(1000, 0)
	for _, name := range Names() {
		c := mustCodec(t, name)
		b := make([]byte, c.Code.Size(len(x)))
		allocs := testing.AllocsPerRun(10, func() {
			c.Code.Encode(b, x)
			if err := c.Code.Decode(x, b, x); err != nil {
				t.Error(err)
			}
			_, _ = ByID(c.ID)
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

// TestCodesLeaveTheLengthOfDifferences: as much of it as Left says, of values that are spread
// normally, and of such of which a tenth is three times as large.
func TestCodesLeaveTheLengthOfDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, name := range Names() {
		c := mustCodec(t, name)
		for _, every := range []int{1 << 20, 10} {
			x, got := make(tensor.Vector, 4*BlockLen), make(tensor.Vector, 4*BlockLen)
			for i := range x {
				x[i] = float32(rng.NormFloat64())
				if i%every == 0 {
					x[i] *= 3
				}
			}
			if err := c.Diff.Decode(got, code(c.Diff, x), nil); err != nil {
				t.Fatal(err)
			}
			if left, least := tensor.Norm2(got)/tensor.Norm2(x), c.Left(); left < least {
				t.Errorf("%s, one of %d large: %.3f of the length is left, at least %g", name, every, left, least)
			}
		}
	}
}
