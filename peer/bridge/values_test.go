package bridge

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/tensor"
)

// TestRoundingIsExact: what is handed over of a range converts to its type and back without a
// change, is the nearest of it, and finite; other ranges stay.
func TestRoundingIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3*roundedAtOnce).Draw(t, "values")
		half := rapid.Bool().Draw(t, "half")
		kind, bits, largest := "bf16", 8, largestBfloat16
		if half {
			kind, bits, largest = "fp16", 11, largestHalf
		}
		layout, r, err := layoutOf([]entry{{Name: "a", Shape: []int{3}}, {Name: "b", Shape: []int{n}, Type: kind}, {Name: "c", Shape: []int{2}}})
		if err != nil {
			t.Fatal(err)
		}
		scale := rapid.SampledFrom([]float32{1e-6, 1, 1e4, 3e38}).Draw(t, "scale")
		v := make(tensor.Vector, layout.Len())
		for i := range v {
			v[i] = scale * float32(math.Sin(float64(i+1)))
		}
		before, other := append(tensor.Vector(nil), v...), append(tensor.Vector(nil), v...)
		r.round(v, other)
		again := append(tensor.Vector(nil), v...)
		r.round(again, other)
		for i, x := range v {
			inside := i >= 3 && i < 3+n
			off := math.Abs(float64(x) - float64(before[i]))
			switch {
			case other[i] != x || again[i] != x:
				t.Fatalf("value %d: %g here, %g there, %g rounded again", i, x, other[i], again[i])
			case !inside && off != 0:
				t.Fatalf("value %d is of no rounded range, and was %g: %g", i, before[i], x)
			case inside && math.Abs(float64(before[i])) > largest && math.Abs(float64(x)) != largest:
				t.Fatalf("value %d: %g of %g, want the largest", i, x, before[i])
			case inside && math.Abs(float64(before[i])) <= largest && off > math.Max(math.Abs(float64(before[i]))*math.Ldexp(1, -bits), 0x1p-25):
				t.Fatalf("value %d: %g of %g", i, x, before[i])
			}
		}
	})
}

// TestQuantum: commits cost at most a twentieth of the time, and none is so long that the run
// ends unseen.
func TestQuantum(t *testing.T) {
	for _, c := range []struct {
		name         string
		step, commit time.Duration
		left         uint64
		members      int
		want         int
	}{
		{"nothing is known", 0, 0, 0, 1, 1},
		{"a quick step", time.Millisecond, time.Millisecond, 0, 1, 39},
		{"a slow step", time.Second, time.Millisecond, 0, 1, 1},
		{"no step at all", 0, time.Second, 0, 1, 65536},
		{"the run's end", time.Millisecond, 100 * time.Millisecond, 100, 4, 25},
		{"the very end", time.Millisecond, 100 * time.Millisecond, 3, 4, 1},
	} {
		var q quantum
		if c.name != "nothing is known" {
			for range 10 {
				q.committed(10, 10*c.step, c.commit, 0)
			}
		}
		if got := q.steps(c.left, c.members); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestQuantumOfAWayThatIsLong: what a commit takes the trainer on its way to the bridge and back counts.
func TestQuantumOfAWayThatIsLong(t *testing.T) {
	var q quantum
	for range 50 { // ten steps of 1 ms, a commit of 1 ms, and a way of 3 ms
		q.committed(10, 13*time.Millisecond, time.Millisecond, 4*time.Millisecond)
	}
	if got := q.steps(0, 1); got < 155 || got > 157 {
		t.Errorf("%d, want 156", got)
	}
}

// file is a memory of a thousand values.
func file(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "memory"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(4000); err != nil {
		t.Fatal(err)
	}
	return f
}
