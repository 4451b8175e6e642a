package coding

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
)

const maxFuzzValues = 1 << 12

// decodeFuzzed: for any bytes and any length, a decoder gives an error that says
// why and leaves dst alone, or gives finite values.
func decodeFuzzed(t *testing.T, c Coder, data []byte, n uint16) (tensor.Vector, error) {
	before := make(tensor.Vector, n%maxFuzzValues)
	for i := range before {
		before[i] = float32(i)
	}
	dst, received := slices.Clone(before), slices.Clone(data)
	err := c.Decode(dst, data, nil)
	if !bytes.Equal(data, received) {
		t.Fatal("the code was written to")
	}
	if err != nil {
		named(t, err)
		if !slices.Equal(dst, before) {
			t.Fatalf("%v, but dst was written to", err)
		}
	} else if !tensor.Finite(dst) {
		t.Fatalf("decoded %v", dst)
	}
	return dst, err
}

// named fails if err wraps no error of this package.
func named(t *testing.T, err error) {
	for _, known := range []error{ErrSize, ErrNotFinite, ErrScale, ErrPadding, ErrSpacing, ErrHalf} {
		if errors.Is(err, known) {
			return
		}
	}
	t.Fatalf("error %v wraps no sentinel", err)
}

// fuzzDecode fuzzes a coder of which each code is the only one of its values.
func fuzzDecode(f *testing.F, c Coder) {
	f.Add([]byte{}, uint16(0))
	f.Add(code(c, tensor.Vector{1, -2, 3.5}), uint16(3))
	f.Fuzz(func(t *testing.T, data []byte, n uint16) {
		dst, err := decodeFuzzed(t, c, data, n)
		if err != nil {
			return
		}
		if again := code(c, dst); !bytes.Equal(again, data) {
			t.Fatalf("% x decodes to %v, whose code is % x", data, dst, again)
		}
	})
}

func FuzzRawDecode(f *testing.F) { fuzzDecode(f, Float(Raw)) }

func FuzzBF16Decode(f *testing.F) { fuzzDecode(f, Float(BF16)) }

func FuzzFP16Decode(f *testing.F) { fuzzDecode(f, Float(FP16)) }

// FuzzSteps: what is decoded is what is measured; shrunk it is shorter, and still a code.
func FuzzSteps(f *testing.F) {
	for _, n := range []int{0, 3, BlockLen + 3} {
		for _, c := range allSteps() {
			f.Add(code(c, wave(n, 0)), uint16(n), c.bits)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, n uint16, bits uint8) {
		c := allSteps()[bits%4]
		dst, err := decodeFuzzed(t, c, data, n)
		if err != nil {
			return
		}
		norm := math.Sqrt(c.SquaredNorm(data, len(dst)))
		if want := tensor.Norm2(dst); math.Abs(norm-want) > 1e-6*want {
			t.Fatalf("norm %v, said to be %v", want, norm)
		}
		shrunk := slices.Clone(data)
		c.Shrink(shrunk, len(dst), 0.3)
		if got := tensor.Norm2(decoded(t, c, shrunk, len(dst))); got > 0.3*norm*(1+1e-6) {
			t.Fatalf("norm %v shrinks to %v", norm, got)
		}
	})
}

// FuzzLattice: a code is refused, and dst is as it was; or every block is either
// finite or has failed and keeps the reference, and answering it finds the same.
func FuzzLattice(f *testing.F) {
	for _, n := range []int{0, 3, BlockLen + 3} {
		for width := range uint8(3) {
			l := Lattice{6, 4}
			f.Add(l.coded(wave(n, 0), same(n, 0.5), nil, Width(width)), uint16(n), width, []byte{0xff}, uint8(2))
			f.Add(l.coded(wave(n, 0), same(n, 0.5), Set{2}, Width(width)), uint16(n), width, []byte{2}, uint8(2))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, n uint16, width uint8, which []byte, codec uint8) {
		l, reference := lattices()[codec%4], wave(int(n%maxFuzzValues), 0)
		before := wave(len(reference), 4)
		dst, blocks := slices.Clone(before), Blocks(len(reference))
		p := Pass{Width: Width(width % 3), Which: which, Halves: Set{0x55}, Failed: make(Set, SetSize(len(dst))), Seen: make([]float32, blocks)}
		p.Limits = same(len(reference), 2)
		err := l.Decode(dst, data, reference, p)
		again := p
		again.Failed, again.Seen = make(Set, len(p.Failed)), make([]float32, blocks)
		diff := make([]byte, l.Diff().Size(Set(which).Values(len(dst))))
		if which == nil {
			diff = make([]byte, l.Diff().Size(len(dst)))
		}
		answer, other := l.Answer(diff, data, reference, again)
		if (err == nil) != (other == nil) {
			t.Fatalf("decoding gives %v, answering %v", err, other)
		}
		if err != nil {
			named(t, err)
			if !slices.Equal(dst, before) {
				t.Fatalf("%v, but dst was written to", err)
			}
			return
		}
		if !tensor.Finite(dst) || !bytes.Equal(p.Failed, again.Failed) {
			t.Fatalf("decoded %v, blocks %b failed, answering %b", dst, p.Failed, again.Failed)
		}
		for i := range blocks {
			from, to := i*BlockLen, min((i+1)*BlockLen, len(dst))
			if (p.Failed.Has(i) || !p.has(i)) && !slices.Equal(dst[from:to], reference[from:to]) {
				t.Fatalf("block %d has changed", i)
			}
		}
		if want := tensor.SquaredDistance(dst, reference); math.Abs(answer.SquaredDistance-want) > 1e-5*want {
			t.Fatalf("squared distance %v, said to be %v", want, answer.SquaredDistance)
		}
	})
}
