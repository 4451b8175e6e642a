package coding

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s is\n%swant\n%s", name, text, want)
	}
}

// TestGoldenValues pins the bytes of the codecs that code each value for itself.
func TestGoldenValues(t *testing.T) {
	x := tensor.Vector{
		0, float32(math.Copysign(0, -1)), 1, -1.5, math.Pi, -1e-3, 65504,
		0x1.01p0, 0x1.03p0, // halfway between two bfloat16
		math.SmallestNonzeroFloat32, 0x1p-126, 0x1.fep127, -0x1.fep127,
	}
	for _, name := range []string{rawName, bf16Name, fp16Name} {
		codec := mustCodec(t, name)
		var b strings.Builder
		for i := range x {
			fmt.Fprintf(&b, "%-24s %x %x\n", fmt.Sprintf("%x", x[i]), code(codec.Code, x[i:i+1]), code(codec.Diff, x[i:i+1]))
		}
		golden(t, name, b.String())
	}
}

// wave is values that any implementation can compute exactly: multiples of 2^-10
// between -1 and 1, without order.
func wave(n, salt int) tensor.Vector {
	x := make(tensor.Vector, n)
	for i := range x {
		x[i] = float32((i*i*37+i*101+salt*997)%2047-1023) / 1024
	}
	return x
}

// goldenLengths are a block that is all padding but for a few values, one that is
// odd, and a whole one with another behind it.
var goldenLengths = [...]int{5, 77, BlockLen + 3}

// TestGoldenSteps pins the codes of steps.
func TestGoldenSteps(t *testing.T) {
	for _, bits := range []uint8{1, 3, 4, 8} {
		c := Steps{bits}
		var b strings.Builder
		fmt.Fprintf(&b, "# %s, of the values (i*i*37 + i*101) mod 2047 - 1023, times 2^-10, for i from 0\n", c.name())
		for _, n := range goldenLengths {
			fmt.Fprintf(&b, "\n%d values\n%s", n, dump(code(c, wave(n, 0))))
		}
		golden(t, fmt.Sprintf("steps%d", bits), b.String())
	}
}

// TestGoldenLattice pins the codes of lattices, and that they decode, with the
// reference that the files name.
func TestGoldenLattice(t *testing.T) {
	for _, bits := range []uint8{4, 5, 6, 8} {
		l := Lattice{code: bits, diff: 4}
		var b strings.Builder
		fmt.Fprintf(&b, "# Blocks of %d bits, of the values x[i] = ((i*i*37 + i*101) mod 2047 - 1023) * 2^-10 for i from 0,\n", bits)
		b.WriteString("# of range 2^-5; the receiver has x[i] + ((i*i*37 + i*101 + 997) mod 2047 - 1023) * 2^-15.\n")
		for _, n := range goldenLengths {
			x, reference, ranges := wave(n, 0), wave(n, 1), make([]float32, Blocks(n))
			for i := range reference {
				reference[i] = x[i] + reference[i]/32
			}
			for i := range ranges {
				ranges[i] = 0x1p-5
			}
			for width, name := range []string{"normal", "wide", "halves"} {
				coded := make([]byte, l.MaxSize(n))
				coded = coded[:l.Encode(coded, x, ranges, nil, Width(width))]
				fmt.Fprintf(&b, "\n%d values, %s\n%s", n, name, dump(coded))
				p := Pass{Width: Width(width), Failed: make(Set, SetSize(n)), Halves: Set{0xff}}
				diff := make([]byte, l.Diff().Size(n))
				if _, err := l.Answer(diff, coded, reference, p); err != nil || p.Failed.Count() > 0 {
					t.Errorf("%d values, %s: error %v, %d blocks failed", n, name, err, p.Failed.Count())
				}
				fmt.Fprintf(&b, "answered with 4 bits\n%s", dump(diff))
			}
		}
		golden(t, fmt.Sprintf("lattice%d", bits), b.String())
	}
}

// dump is bytes in lines of 32.
func dump(code []byte) string {
	const width = 32
	var b strings.Builder
	for len(code) > 0 {
		n := min(width, len(code))
		fmt.Fprintln(&b, hex.EncodeToString(code[:n]))
		code = code[n:]
	}
	return b.String()
}

// TestGoldenExample is the example that docs/CODECS.md works out by hand.
func TestGoldenExample(t *testing.T) {
	x, reference := tensor.Vector{0.5, -0.25, 1.03, 0.72, -1}, tensor.Vector{0.5, 0, 1.25, 0.5, -1.125}
	l := Lattice{code: 6, diff: 4}
	coded := l.coded(x, []float32{0.96875}, nil, Normal)
	if want := unhex(t, "0000803d 71a9928f c80c00 3403"); !bytes.Equal(coded, want) {
		t.Errorf("code %x, want %x", coded, want)
	}
	diff := make([]byte, l.Diff().Size(len(x)))
	answer, err := l.Answer(diff, coded, reference, Pass{Failed: make(Set, 1)})
	if want := unhex(t, "2549123d 704909"); err != nil || !bytes.Equal(diff, want) || answer.SquaredDistance != 0.203125 {
		t.Errorf("error %v, difference %x, want %x, squared distance %v", err, diff, want, answer.SquaredDistance)
	}
	l.Diff().Shrink(diff, len(x), 0.5)
	if want := unhex(t, "2549923c 704909"); !bytes.Equal(diff, want) {
		t.Errorf("half the difference %x, want %x", diff, want)
	}
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
