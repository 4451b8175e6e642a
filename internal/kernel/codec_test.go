package kernel

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestCodecsEqualTheTwin compares every kernel of every variant with its twin, bit
// for bit and around the slices too: for every length to maxLength, and about that
// of a block, at distances from the start of a line that differ for each slice.
func TestCodecsEqualTheTwin(t *testing.T) {
	onAllCodecs(t, func(t *testing.T, v codecVariant) {
		if v.name == plainCodecs().name {
			return // the twin itself
		}
		for n := range maxLength + 1 {
			compareCodecs(t, v, n, n%lineSize)
		}
		for offset := range lineSize {
			compareCodecs(t, v, Block, offset)
		}
		for _, n := range []int{Block - 1, Block + 1, 1024, 4*15616 + 77} {
			compareCodecs(t, v, n, 13)
		}
	})
}

func compareCodecs(t *testing.T, v codecVariant, n, offset int) {
	t.Helper()
	twin := plainCodecs()
	random := rand.New(rand.NewPCG(uint64(n), uint64(offset)))
	initial, got, want := newMemory(n, offset), newMemory(n, offset), newMemory(n, offset)
	for _, finite := range []bool{true, false} {
		initial.fill(random, finite)
		for _, r := range codecRuns() {
			if r.block && (n > Block || v.block && n != Block) {
				continue
			}
			got.copyFrom(initial)
			want.copyFrom(initial)
			g, w := r.apply(v, got), r.apply(twin, want)
			sameMemory(t, got, want)
			if g != w {
				t.Errorf("result %x, want %x", g, w)
			}
			if t.Failed() {
				t.Fatalf("%s of %d values at %d (finite: %v)", r.name, n, offset, finite)
			}
		}
	}
}

// TestNoCodecAllocates holds for the functions that choose, and for short blocks.
func TestNoCodecAllocates(t *testing.T) {
	for _, n := range []int{Block, Block - 1} {
		m, v := benchMemory(n), exportedCodecs()
		for _, r := range codecRuns() {
			if allocs := testing.AllocsPerRun(10, func() { r.apply(v, m) }); allocs != 0 {
				t.Errorf("%s of %d values: %v allocations", r.name, n, allocs)
			}
		}
	}
}

// TestLatticeKernels: against arithmetic that is exact, and hash/crc32.
func TestLatticeKernels(t *testing.T) {
	const spacing, bits = 0x1p-7, 6
	random := rand.New(rand.NewPCG(5, 5))
	x, reference := make([]float32, Block), make([]float32, Block)
	indices := make([]byte, 4*Block)
	for i := range x {
		x[i] = float32(random.IntN(1<<12)-1<<11) / (1 << 9) // ties among them
		reference[i] = x[i] + float32(random.IntN(60)-30)*spacing
		z := int32(math.RoundToEven(float64(x[i]) / spacing))
		binary.LittleEndian.PutUint32(indices[4*i:], uint32(z))
	}
	want := crc32.Checksum(indices, crc32.MakeTable(crc32.Castagnoli))
	onAllCodecs(t, func(t *testing.T, v codecVariant) {
		low, got, differences := make([]byte, Block), make([]float32, Block), make([]float32, Block)
		if sum, most := v.indices(low, x, 1/spacing); sum != want || most != maxAbsGo(x) {
			t.Errorf("sum %#x, want %#x; most %v, want %v", sum, want, most, maxAbsGo(x))
		}
		if sum := v.values(got, low, nil, reference, spacing, 1/spacing, bits); sum != want {
			t.Errorf("decoded, sum %#x, want %#x", sum, want)
		}
		sum, peak, squares := v.difference(differences, low, nil, reference, spacing, 1/spacing, bits)
		largest, total := 0.0, 0.0
		for i := range x {
			exact := spacing * float64(int32(binary.LittleEndian.Uint32(indices[4*i:])))
			d := exact - float64(reference[i])
			largest, total = max(largest, math.Abs(d)), total+d*d
			if float64(got[i]) != exact || float64(differences[i]) != d {
				t.Fatalf("value %d is %v, want %v; difference %v, want %v", i, got[i], exact, differences[i], d)
			}
		}
		if sum != want || float64(peak) != largest || math.Abs(float64(squares)-total) > 1e-6*total {
			t.Errorf("sum %#x, peak %v, squares %v; want %#x, %v, %v", sum, peak, squares, want, largest, total)
		}
	})
}

// TestFP16EncodeEqualsTheLoop compares with rounding by comparing distances, for
// every half, what lies halfway to the next, and their neighbours.
func TestFP16EncodeEqualsTheLoop(t *testing.T) {
	var x []float32
	var want []uint16
	for h := range uint16(halfPrecisionInfinity) {
		low, high := fromHalf(h), fromHalf(h+1)
		if h+1 == halfPrecisionInfinity {
			high = 65536
		}
		middle := low + (high-low)/2
		below, above := math.Nextafter32(middle, low), math.Nextafter32(middle, high)
		x = append(x, low, below, middle, above, -low, -middle)
		want = append(want, h, h, h+h&1, h+1, h|1<<15, (h+h&1)|1<<15)
	}
	onAllCodecs(t, func(t *testing.T, v codecVariant) {
		code := make([]byte, 2*len(x))
		v.fp16Encode(code, x)
		for i := range x {
			if got := binary.LittleEndian.Uint16(code[2*i:]); got != want[i] {
				t.Fatalf("%v becomes %#x, want %#x", x[i], got, want[i])
			}
		}
	})
}

const halfPrecisionInfinity = 0x7c00

// TestSumAbsIsClose: to a sum that is exact.
func TestSumAbsIsClose(t *testing.T) {
	x := values(rand.New(rand.NewPCG(9, 9)), Block)
	exact := new(big.Float).SetPrec(400)
	for _, v := range x {
		exact.Add(exact, new(big.Float).SetFloat64(math.Abs(float64(v))))
	}
	want, _ := exact.Float64()
	if got := SumAbs(x); math.Abs(got-want) > 1e-13*want {
		t.Errorf("sum %v, want %v", got, want)
	}
}
