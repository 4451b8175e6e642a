package coding

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/tensor"
)

func lattices() []Lattice { return []Lattice{{4, 1}, {5, 3}, {6, 4}, {8, 8}} }

// near is a pair of vectors whose difference is at most so much in any value.
func near(random *rand.Rand, n int, size, apart float32) (x, reference tensor.Vector) {
	x, reference = make(tensor.Vector, n), make(tensor.Vector, n)
	for i := range x {
		reference[i] = size * float32(random.NormFloat64())
		x[i] = reference[i] + apart*(2*random.Float32()-1)
	}
	return x, reference
}

func same(n int, r float32) []float32 {
	ranges := make([]float32, Blocks(n))
	for i := range ranges {
		ranges[i] = r
	}
	return ranges
}

func (l Lattice) coded(x tensor.Vector, ranges []float32, which Set, width Width) []byte {
	b := make([]byte, l.MaxSize(len(x)))
	return b[:l.Encode(b, x, ranges, which, width)]
}

// TestLatticeWithinRange: as long as twice the range covers how far apart the values are,
// and what float32 lacks, every value comes back within half the spacing.
func TestLatticeWithinRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		n := rapid.SampledFrom([]int{0, 1, 5, BlockLen - 1, BlockLen, BlockLen + 1, 3*BlockLen - 36}).Draw(t, "n")
		size := float32(math.Exp2(rapid.Float64Range(-100, 60).Draw(t, "size")))
		apart := float32(math.Exp2(rapid.Float64Range(-40, 15).Draw(t, "apart")))
		x, reference := near(random, n, size, 2*apart*0.999)
		apart = min(apart+tensor.MaxAbs(x)*0x1p-23, MaxRange) // of large values the indices are rounded
		width := Width(rapid.IntRange(0, 1).Draw(t, "width"))
		for _, l := range lattices() {
			p := Pass{Width: width, Failed: make(Set, SetSize(n)), Seen: make([]float32, Blocks(n))}
			got := make(tensor.Vector, n)
			coded := l.coded(x, same(n, apart), nil, width)
			if err := l.Decode(got, coded, reference, p); err != nil {
				t.Fatal(err)
			}
			if p.Failed.Count() > 0 {
				t.Fatalf("%+v: blocks %v failed", l, p.Failed)
			}
			for i, v := range x {
				block := reference[i/BlockLen*BlockLen:][:blockLen(i/BlockLen, n)]
				most := max(tensor.MaxAbs(x[i/BlockLen*BlockLen:][:len(block)]), 0)
				spacing := max(float64(l.Spacing(apart)), float64(most)*finest)
				if err := math.Abs(float64(got[i]) - float64(v)); err > spacing/2+0x1p-22*math.Abs(float64(v)) {
					t.Fatalf("%+v: %v becomes %v, spacing %v", l, v, got[i], spacing)
				}
				if seen := p.Seen[i/BlockLen]; seen < float32(math.Abs(float64(got[i])-float64(reference[i])))*0.999 {
					t.Fatalf("%+v: saw %v, but %v and %v", l, seen, got[i], reference[i])
				}
			}
		}
	})
}

// TestLatticeEqualModels: the same values on both sides decode to what the sender
// knows, at any spacing; a machine with other instructions finds the same indices.
func TestLatticeEqualModels(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, r := range []float32{MinRange, 1e-6, 1, MaxRange} {
		x, _ := near(random, 3*BlockLen, 1, 0)
		for _, l := range lattices() {
			p := Pass{Failed: make(Set, 1)}
			got := make(tensor.Vector, len(x))
			if err := l.Decode(got, l.coded(x, same(len(x), r), nil, Normal), x, p); err != nil || p.Failed.Count() > 0 {
				t.Errorf("%+v, range %v: error %v, %d blocks failed", l, r, err, p.Failed.Count())
			}
		}
	}
}

// TestLatticeFails: a block in which a single value is beyond reach fails, whichever
// value it is and however far; it keeps the reference, and the others come through.
// Wider, it comes too.
func TestLatticeFails(t *testing.T) {
	const n, apart = 3*BlockLen + 40, 0.01
	random := rand.New(rand.NewPCG(2, 2))
	for _, l := range lattices() {
		x, reference := near(random, n, 1, apart)
		reach := float64(l.Spacing(apart)) * math.Exp2(float64(l.code)-1)
		for _, at := range []int{0, 1, BlockLen - 1, BlockLen, 2*BlockLen + 77, n - 1} {
			for _, far := range []float64{1.13, 1.5, 2, 4, 7.9, -1.13, -2, -7.9} {
				x := slices.Clone(x)
				x[at] = reference[at] + float32(reach*far)
				got, p := make(tensor.Vector, n), Pass{Failed: make(Set, 1)}
				ranges := same(n, apart)
				if err := l.Decode(got, l.coded(x, ranges, nil, Normal), reference, p); err != nil {
					t.Fatal(err)
				}
				if !p.Failed.Has(at/BlockLen) || p.Failed.Count() != 1 {
					t.Fatalf("%+v: %v times as far as it reaches at %d: blocks %b failed", l, far, at, p.Failed)
				}
				from := at / BlockLen * BlockLen
				if to := min(from+BlockLen, n); !slices.Equal(got[from:to], reference[from:to]) || slices.Equal(got, reference) {
					t.Fatalf("%+v: a failed block changed", l)
				}
				if l.code == 8 {
					continue // 12 bits reach 16 times as far too
				}
				wide := Pass{Width: Wide, Which: p.Failed, Failed: make(Set, 1)}
				if err := l.Decode(got, l.coded(x, ranges, p.Failed, Wide), reference, wide); err != nil || wide.Failed.Count() > 0 {
					t.Fatalf("%+v: wide, error %v, blocks %b failed", l, err, wide.Failed)
				}
				if math.Abs(float64(got[at]-x[at])) > float64(l.Spacing(apart)) {
					t.Fatalf("%+v: wide, %v becomes %v", l, x[at], got[at])
				}
			}
		}
	}
}

// TestLatticeUnknownRange: without a range a block goes as halves, which a receiver
// may refuse.
func TestLatticeUnknownRange(t *testing.T) {
	const n = 2*BlockLen + 9
	random := rand.New(rand.NewPCG(3, 3))
	x, reference := near(random, n, 1, 0.01)
	l := Lattice{6, 4}
	coded := l.coded(x, []float32{0.01, 0, 0.01}, nil, Normal)
	if want := 2*headSize + planesSize(BlockLen, 6) + spacingSize + 2*BlockLen + planesSize(9, 6); len(coded) != want {
		t.Errorf("%d bytes, want %d", len(coded), want)
	}
	got := slices.Clone(reference)
	p := Pass{Failed: make(Set, 1)}
	if err := l.Decode(got, coded, reference, p); !errors.Is(err, ErrHalf) || !slices.Equal(got, reference) {
		t.Errorf("error %v", err)
	}
	p.Halves = Set{1 << 1}
	if err := l.Decode(got, coded, reference, p); err != nil || p.Failed.Count() > 0 {
		t.Errorf("error %v, failed %b", err, p.Failed)
	}
	for i, v := range got[BlockLen : 2*BlockLen] {
		if math.Abs(float64(v-x[BlockLen+i])) > 0x1p-10 {
			t.Errorf("%v becomes %v", x[BlockLen+i], v)
		}
	}
}

// TestLatticeLimits: a spacing beyond the receiver's limit fails unseen.
func TestLatticeLimits(t *testing.T) {
	const n = 2 * BlockLen
	x, reference := near(rand.New(rand.NewPCG(4, 4)), n, 1, 0.01)
	l := Lattice{6, 4}
	coded := l.coded(x, same(n, 0.01), nil, Normal)
	s := float(coded)
	p := Pass{Failed: Set{0xff}, Limits: []float32{s, math.Nextafter32(s, 0)}}
	if err := l.Decode(make(tensor.Vector, n), coded, reference, p); err != nil || p.Failed[0] != 1<<1 {
		t.Errorf("error %v, failed %b", err, p.Failed)
	}
}

// TestLatticeRefuses: what no encoder writes.
func TestLatticeRefuses(t *testing.T) {
	const n = BlockLen + 3
	x, reference := near(rand.New(rand.NewPCG(5, 5)), n, 1, 0.01)
	l := Lattice{6, 4}
	good := l.coded(x, same(n, 0.01), nil, Normal)
	halves := l.coded(x, nil, nil, Halves)
	spacing := func(at int, s float64) func([]byte) []byte {
		return func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[at:], math.Float32bits(float32(s)))
			return b
		}
	}
	second := l.blockSize(BlockLen, Normal)
	for _, f := range []struct {
		name string
		code []byte
		pass Pass
		do   func([]byte) []byte
		want error
	}{
		{"nothing", good, Pass{}, func([]byte) []byte { return nil }, ErrSize},
		{"less", good, Pass{}, func(b []byte) []byte { return b[:len(b)-1] }, ErrSize},
		{"half a head", good, Pass{}, func(b []byte) []byte { return b[:second+2] }, ErrSize},
		{"more", good, Pass{}, func(b []byte) []byte { return append(b, 0) }, ErrSize},
		{"one block too many", good, Pass{Which: Set{1}}, slices.Clone[[]byte], ErrSize},
		{"another width", good, Pass{Width: Wide}, slices.Clone[[]byte], ErrSize},
		{"no halves", good, Pass{Width: Halves}, slices.Clone[[]byte], ErrSpacing},
		{"negative spacing", good, Pass{}, spacing(second, -1), ErrSpacing},
		{"spacing of -0", good, Pass{}, spacing(0, math.Copysign(0, -1)), ErrSpacing},
		{"infinite spacing", good, Pass{}, spacing(second, math.Inf(1)), ErrSpacing},
		{"NaN", good, Pass{}, spacing(0, math.NaN()), ErrSpacing},
		{"spacing too small", good, Pass{}, spacing(0, 0x1p-127), ErrSpacing},
		{"spacing too large", good, Pass{}, spacing(0, 0x1.1p96), ErrSpacing},
		{"padding", good, Pass{}, func(b []byte) []byte { b[len(b)-1] |= 0x80; return b }, ErrPadding},
		{"halves of no leave", halves, Pass{Width: Halves, Halves: Set{1}}, slices.Clone[[]byte], ErrHalf},
		{"halves that are infinite", halves, Pass{Halves: Set{3}}, func(b []byte) []byte { b[len(b)-1] = 0x7c; b[len(b)-2] = 0; return b }, ErrNotFinite},
	} {
		spoilt := f.do(slices.Clone(f.code))
		f.pass.Failed = make(Set, 1)
		got := slices.Clone(x)
		if err := l.Decode(got, spoilt, reference, f.pass); !errors.Is(err, f.want) || !slices.Equal(got, x) {
			t.Errorf("%s: error %v, want %v", f.name, err, f.want)
		}
		values := n
		if f.pass.Which != nil {
			values = f.pass.Which.Values(n)
		}
		if _, err := l.Answer(make([]byte, l.Diff().Size(values)), spoilt, reference, f.pass); !errors.Is(err, f.want) {
			t.Errorf("%s: answering, error %v, want %v", f.name, err, f.want)
		}
	}
}

// TestLatticeRefusesItsOwn: a code of values that are not finite, or halves of
// values that are too large.
func TestLatticeRefusesItsOwn(t *testing.T) {
	l := Lattice{6, 4}
	for _, bad := range []float64{math.NaN(), math.Inf(-1), math.MaxFloat32} {
		x := wave(BlockLen, 0)
		x[33] = float32(bad)
		for _, width := range []Width{Normal, Wide, Halves} {
			p := Pass{Width: width, Failed: make(Set, 1), Halves: Set{1}}
			err := l.Decode(make(tensor.Vector, BlockLen), l.coded(x, same(BlockLen, 1), nil, width), wave(BlockLen, 0), p)
			if !errors.Is(err, ErrSpacing) && !errors.Is(err, ErrNotFinite) {
				t.Errorf("%v at width %d: error %v", bad, width, err)
			}
		}
	}
}
