package dataset

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
	"github.com/seed-97356399/murmuration/tensor"
)

// tinySet has n pictures of one pixel, whose level is their number.
func tinySet(t testing.TB, n int) *Set {
	t.Helper()
	pixels, labels := make([]uint8, n), make([]uint8, n)
	for i := range n {
		pixels[i], labels[i] = uint8(i), uint8(i%3)
	}
	set, err := NewSet(pixels, labels, Shape{1, 1, 1}, 3, Normalization{Scale: 1.0 / 255})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestNewSetRefusesWhatDoesNotFit(t *testing.T) {
	fine := Normalization{Scale: 1}
	for name, c := range map[string]struct {
		pixels, labels  []uint8
		inputs, classes int
		norm            Normalization
		want            string
	}{
		"length":  {make([]uint8, 5), make([]uint8, 2), 3, 2, fine, "need 6 bytes, got 5"},
		"label":   {make([]uint8, 2), []uint8{0, 2}, 1, 2, fine, "label 2 of picture 1"},
		"inputs":  {nil, nil, 0, 2, fine, "at least 1 pixel"},
		"classes": {nil, nil, 1, 257, fine, "1 to 256 classes"},
		"scale":   {nil, nil, 1, 2, Normalization{}, "not positive"},
	} {
		_, err := NewSet(c.pixels, c.labels, Shape{1, c.inputs, 1}, c.classes, c.norm)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestBatchIsNormalized(t *testing.T) {
	set, err := NewSet([]uint8{0, 51, 255, 102}, []uint8{1, 0}, Shape{1, 2, 1}, 2, Normalization{Mean: 0.2, Scale: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	set.Fill(&b, 0, 2)
	want := tensor.Vector{-0.4, 0, 1.6, 0.4}
	for i := range want {
		if d := b.X[i] - want[i]; d > 1e-6 || d < -1e-6 {
			t.Fatalf("got %v, want %v", b.X, want)
		}
	}
	if !slices.Equal(b.Labels, []uint8{1, 0}) {
		t.Fatalf("labels %v", b.Labels)
	}
}

func TestSubsetCopiesInOrder(t *testing.T) {
	sub := tinySet(t, 9).Subset([]int32{7, 2})
	if sub.Len() != 2 || sub.Image(0)[0] != 7 || sub.Image(1)[0] != 2 || sub.Label(0) != 1 || sub.Label(1) != 2 {
		t.Fatalf("got %d pictures: %v %v, labels %d %d", sub.Len(), sub.Image(0), sub.Image(1), sub.Label(0), sub.Label(1))
	}
}

// Every pass shows every picture once, wherever batches begin and end.
func TestSamplerPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		size := rapid.IntRange(1, n).Draw(t, "batch")
		seed := rapid.Uint64().Draw(t, "seed")
		pixels := make([]uint8, n)
		for i := range pixels {
			pixels[i] = uint8(i)
		}
		set, err := NewSet(pixels, make([]uint8, n), Shape{1, 1, 1}, 1, Normalization{Scale: 1.0 / 255})
		if err != nil {
			t.Fatal(err)
		}
		sampler, err := NewSampler(set, size, seed)
		if err != nil {
			t.Fatal(err)
		}
		var seen []int
		var b Batch
		for len(seen) < 3*n {
			sampler.Next(&b)
			if b.Len() != size {
				t.Fatalf("batch of %d, want %d", b.Len(), size)
			}
			for _, x := range b.X {
				seen = append(seen, int(x+0.5))
			}
		}
		for pass := range 3 {
			order := slices.Clone(seen[pass*n : (pass+1)*n])
			slices.Sort(order)
			for i, v := range order {
				if v != i {
					t.Fatalf("pass %d shows %v", pass, order)
				}
			}
		}
	})
}

func TestSamplerOrderIsItsSeed(t *testing.T) {
	set := tinySet(t, 200)
	draw := func(seed uint64) tensor.Vector {
		sampler, err := NewSampler(set, 150, seed)
		if err != nil {
			t.Fatal(err)
		}
		var b Batch
		sampler.Next(&b)
		return b.X
	}
	if !slices.Equal(draw(1), draw(1)) {
		t.Error("one seed gives two orders")
	}
	if slices.Equal(draw(1), draw(2)) {
		t.Error("two seeds give one order")
	}
}

func TestBatchLargerThanData(t *testing.T) {
	for _, size := range []int{0, -1, 8} {
		_, err := NewSampler(tinySet(t, 7), size, 1)
		var wrong *BatchError
		if !errors.As(err, &wrong) || wrong.Batch != size || wrong.Have != 7 {
			t.Errorf("batch %d of 7: %v", size, err)
		}
	}
	_, err := NewSampler(tinySet(t, 7), 8, 1)
	if !strings.Contains(err.Error(), "8") || !strings.Contains(err.Error(), "7") {
		t.Errorf("the error does not name both numbers: %v", err)
	}
}

func TestSamplerAllocatesNothing(t *testing.T) {
	sampler, err := NewSampler(tinySet(t, 100), 33, 1)
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	sampler.Next(&b)
	if n := testing.AllocsPerRun(50, func() { sampler.Next(&b) }); n != 0 {
		t.Errorf("%v allocations a batch", n)
	}
}

func BenchmarkSampler(b *testing.B) {
	set, err := Glyphs(1, seeded.Identity(2000))
	if err != nil {
		b.Fatal(err)
	}
	sampler, err := NewSampler(set, 64, 1)
	if err != nil {
		b.Fatal(err)
	}
	var batch Batch
	b.ReportAllocs()
	for b.Loop() {
		sampler.Next(&batch)
	}
}
