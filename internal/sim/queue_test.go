package sim_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/sim"
)

// TestOrderIsThatOfTimeThenOfAdding compares with a stable sort.
func TestOrderIsThatOfTimeThenOfAdding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type item struct{ at, serial int }
		var queue sim.Queue
		var want, got []item
		for i, at := range rapid.SliceOf(rapid.IntRange(0, 5)).Draw(t, "times") {
			it := item{at, i}
			want = append(want, it)
			queue.After(time.Duration(at), func() {
				if queue.Now() != time.Duration(at) {
					t.Fatalf("the clock shows %d at %d", queue.Now(), at)
				}
				got = append(got, it)
			})
		}
		slices.SortStableFunc(want, func(a, b item) int { return a.at - b.at })
		if n := queue.Run(10); n != len(want) || !slices.Equal(got, want) {
			t.Fatalf("%d happened: %v, want %v", n, got, want)
		}
	})
}

func TestWhatHappensMayBringAboutMore(t *testing.T) {
	var queue sim.Queue
	var ticks []time.Duration
	var tick func()
	tick = func() {
		ticks = append(ticks, queue.Now())
		queue.After(3*time.Second, tick)
	}
	queue.After(-time.Second, tick)
	queue.Run(7 * time.Second)
	if want := []time.Duration{0, 3 * time.Second, 6 * time.Second}; !slices.Equal(ticks, want) {
		t.Errorf("ticks at %v, want %v", ticks, want)
	}
	if queue.Now() != 7*time.Second || queue.Len() != 1 {
		t.Errorf("the clock shows %v with %d to come", queue.Now(), queue.Len())
	}
}
