package coding

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
)

// TestAnswerIsDecodeSubtractEncode: the one pass gives the bytes of the three.
func TestAnswerIsDecodeSubtractEncode(t *testing.T) {
	const n = 5*BlockLen + 100
	random := rand.New(rand.NewPCG(6, 6))
	for _, l := range lattices() {
		x, reference := near(random, n, 1, 0.01)
		reference[BlockLen+3] += 1 // fails
		ranges := same(n, 0.01)
		ranges[4] = 0 // halves
		which := Set{0b110111}
		p := Pass{Which: which, Halves: Set{1 << 4}, Failed: make(Set, 1), Seen: make([]float32, 6)}
		got := make(tensor.Vector, n)
		coded := l.coded(x, ranges, which, Normal)
		if err := l.Decode(got, coded, reference, p); err != nil || p.Failed[0] != 1<<1 {
			t.Fatalf("error %v, blocks %b failed", err, p.Failed)
		}
		distance := tensor.ScaledDistance(got, 1, got, reference)
		var d tensor.Vector
		for from, to := range which.Runs(n) {
			d = append(d, got[from:to]...)
		}
		want := code(l.Diff(), d)

		diff := bytes.Repeat([]byte{0xa5}, len(want))
		other := p
		other.Failed, other.Seen = Set{0xff}, make([]float32, 6)
		answer, err := l.Answer(diff, coded, reference, other)
		if err != nil || !bytes.Equal(other.Failed, p.Failed) {
			t.Fatalf("error %v, blocks %b failed", err, other.Failed)
		}
		if !bytes.Equal(diff, want) {
			t.Errorf("%+v: another difference than decoded, subtracted and encoded", l)
		}
		if math.Abs(answer.SquaredDistance-distance) > 1e-5*distance {
			t.Errorf("%+v: squared distance %v, want %v", l, answer.SquaredDistance, distance)
		}
		if want := l.Diff().SquaredNorm(diff, len(d)); math.Abs(answer.SquaredNorm-want) > 1e-9*want {
			t.Errorf("%+v: squared norm %v, want %v", l, answer.SquaredNorm, want)
		}
		for i := range p.Seen {
			if p.Seen[i] != other.Seen[i] || (p.Seen[i] == 0) != (i == 1 || i == 3) {
				t.Errorf("%+v: in block %d %v was seen, answering %v", l, i, p.Seen[i], other.Seen[i])
			}
		}
	}
}

// TestExchangeConverges: two models that exchange again and again, each side with
// the range that it has seen, come as close as float32 lets them, and their sum
// stays.
func TestExchangeConverges(t *testing.T) {
	const n = 3*BlockLen + 60
	for _, name := range Names()[4:] {
		l := mustCodec(t, name).Lattice
		a, b := near(rand.New(rand.NewPCG(7, 7)), n, 1, 0.01)
		sum := 0.0
		for i := range a {
			sum += float64(a[i]) + float64(b[i])
		}
		tracked, ranges, seen := same(n, 0), same(n, 0), make([]float32, Blocks(n))
		first, failed := tensor.SquaredDistance(a, b), 0
		for range 150 {
			p := Pass{Halves: Set{0xff}, Failed: make(Set, 1), Seen: seen}
			diff := make([]byte, l.Diff().Size(n))
			if _, err := l.Answer(diff, l.coded(a, ranges, nil, Normal), b, p); err != nil {
				t.Fatal(err)
			}
			failed += p.Failed.Count()
			l.Diff().Shrink(diff, n, 0.5)
			d := decoded(t, l.Diff(), diff, n)
			tensor.Sub(a, d)
			tensor.Add(b, d)
			for i, s := range seen {
				tracked[i] = Track(tracked[i], s)
				ranges[i] = RangeOf(RangeCode(tracked[i]))
			}
		}
		after := 0.0
		for i := range a {
			after += float64(a[i]) + float64(b[i])
		}
		if left := tensor.SquaredDistance(a, b); left > 3e-12*n || failed > 0 || math.Abs(after-sum) > 1e-4 {
			t.Errorf("%s: squared distance %v becomes %v, %d blocks failed, the sum moved by %v", name, first, left, failed, after-sum)
		}
	}
}

// TestLatticeDoesNotAllocate holds for every step of an exchange.
func TestLatticeDoesNotAllocate(t *testing.T) {
	const n = 3*BlockLen + 60
	l := Lattice{6, 4}
	x, reference := near(rand.New(rand.NewPCG(8, 8)), n, 1, 0.01)
	which := Set{0b1101}
	p := Pass{Which: which, Failed: make(Set, 1), Seen: make([]float32, 4), Limits: same(n, 1)}
	room, diff, ranges, codes := make([]byte, l.MaxSize(n)), make([]byte, l.Diff().Size(which.Values(n))), same(n, 0.01), make([]byte, 4)
	got := make(tensor.Vector, n)
	allocs := testing.AllocsPerRun(20, func() {
		for i, r := range ranges {
			codes[i] = RangeCode(r)
		}
		for _, width := range []Width{Normal, Wide} {
			p.Width = width
			coded := room[:l.Encode(room, x, ranges, which, width)]
			if l.Decode(got, coded, reference, p) != nil {
				t.Error("decoding failed")
			}
			if _, err := l.Answer(diff, coded, reference, p); err != nil {
				t.Error(err)
			}
		}
		steps := l.Diff()
		steps.Shrink(diff, which.Values(n), 0.5)
		rest := diff
		for from, to := range which.Runs(n) {
			size := steps.Size(to - from)
			if steps.Decode(got[from:to], rest[:size], nil) != nil {
				t.Error("the difference was refused")
			}
			rest = rest[size:]
		}
		_ = steps.SquaredNorm(diff, which.Values(n))
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
