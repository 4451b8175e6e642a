package bridge

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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
		{"a second's work", time.Millisecond, 100 * time.Millisecond, 0, 1, 1000},
		{"a model so large that a second's work is little", 10 * time.Millisecond, time.Second, 0, 1, 900},
		{"no step at all", 0, time.Second, 0, 1, 65536},
		{"the run's end", time.Millisecond, 100 * time.Millisecond, 100, 4, 25},
		{"the very end", time.Millisecond, 100 * time.Millisecond, 3, 4, 1},
	} {
		var q commitInterval
		if c.name != "nothing is known" {
			for range 20 { // it grows slowly
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
	var q commitInterval
	for range 50 { // ten steps of 1 ms, a commit of 1 ms, and a way of 3 ms
		q.committed(10, 13*time.Millisecond, time.Millisecond, 4*time.Millisecond)
	}
	if got := q.steps(0, 1); got < 155 || got > 157 {
		t.Errorf("%d, want 156", got)
	}
}

// TestStallsMoveTheQuantumLittle: steps of 4.5 ms, commits of 16.2 ms, and of one trainer a commit of
// 2 s, a pause of 2 s in its work and one on its way to the bridge, in any order. A commit and a
// pause have raised a quantum of 140 steps to 4,889 once, 22 s without an exchange.
func TestStallsMoveTheQuantumLittle(t *testing.T) {
	const step, commit, stall = 4500 * time.Microsecond, 16200 * time.Microsecond, 2 * time.Second
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 31))
		about := func(d time.Duration) time.Duration { return time.Duration(float64(d) * (0.9 + 0.2*random.Float64())) }
		stalls := random.Perm(30)[:3] // of a commit, the work, the way
		var q commitInterval
		spent, greatest := time.Duration(0), 0
		for n := range 120 { // undisturbed at first, and in the end
			steps := q.steps(0, 4)
			worked, took, way := time.Duration(steps)*about(step), about(commit), time.Duration(0)
			switch n - 60 {
			case stalls[0]:
				took += stall
			case stalls[1]:
				worked += stall
			case stalls[2]:
				way = stall
			}
			q.committed(steps, worked+way, took, spent+way)
			spent = took
			now := q.steps(0, 4)
			if now > 2*steps || now > 1 && time.Duration(now)*step > 3*time.Second/2 {
				t.Fatalf("seed %d, commit %d: the quantum goes from %d to %d", seed, n, steps, now)
			}
			if n == 59 && (now < 120 || now > 160) {
				t.Fatalf("seed %d: %d steps before any stall, want some 140", seed, now)
			}
			greatest = max(greatest, now)
		}
		if last := q.steps(0, 4); last > 160 || greatest > 333 {
			t.Errorf("seed %d, stalls %v: at most %d, %d in the end", seed, stalls, greatest, last)
		}
	}
}

// TestStepsThatBecomeSlow: of steps that take a hundred times as long from one to the next, the quantum
// in hand is done (a second's work before, 100 s now); after it the trainer is heard of soon.
func TestStepsThatBecomeSlow(t *testing.T) {
	var q commitInterval
	step, away := 4500*time.Microsecond, []time.Duration(nil)
	for n := range 90 {
		if n == 60 {
			step *= 100
		}
		worked := time.Duration(q.steps(0, 1)) * step
		if n > 60 {
			away = append(away, worked)
		}
		q.committed(q.steps(0, 1), worked, 50*time.Millisecond, 0)
	}
	if slices.Max(away) > 15*time.Second || slices.Max(away[10:]) > 2*time.Second {
		t.Errorf("between commits: %v", away)
	}
}

// TestABusyMachine: where each commit takes half a second, all of it waiting for a processor, a trainer
// is still heard of after a few seconds' work.
func TestABusyMachine(t *testing.T) {
	var q commitInterval
	for range 100 {
		steps := q.steps(0, 1)
		q.committed(steps, time.Duration(steps)*2*time.Millisecond, 500*time.Millisecond, 0)
	}
	if got := q.steps(0, 1); got > 2250 {
		t.Errorf("%d steps of 2 ms", got)
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
