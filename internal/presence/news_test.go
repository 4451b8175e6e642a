package presence

import (
	"fmt"
	"testing"

	"github.com/seed-97356399/murmuration/topology"
)

// TestFarFromTheEndStepsAreAnnouncedSeldom: when a 64th of what is left to this peer is done, or after 16 times the least time.
func TestFarFromTheEndStepsAreAnnouncedSeldom(t *testing.T) {
	w := newWorld(t)
	for i := range 15 {
		w.members = append(w.members, member(fmt.Sprint(i), topology.Active+topology.Role(i%2)))
	}
	w.refresh(t, true)
	times := func(ticks, steps int, target uint64) (n int) {
		t.Helper()
		before := len(w.announced)
		for range ticks {
			for range steps {
				w.flock.Stepped()
			}
			w.now = w.now.Add(TickEvery)
			if err := w.Publish(w.now, target); err != nil {
				t.Fatal(err)
			}
		}
		return len(w.announced) - before
	}
	others := w.flock.Total()
	if n := times(1, 1000, 1e6); n != 1 { // so many that they do not double
		t.Error("that it has begun is not said at once")
	}
	for _, c := range []struct {
		ticks, steps int
		left         uint64 // to this peer
		want         int
	}{
		{160, 1, 1e6, 10}, {160, 1, 0, 10}, {160, 1, 64 * 8, 20}, {160, 1, 64, 160}, {160, 0, 64, 0},
	} {
		target := uint64(0)
		if c.left > 0 {
			target = others + w.flock.Steps() + 16*c.left + uint64(c.ticks*c.steps) // as if others did as much
		}
		if n := times(c.ticks, c.steps, target); n != c.want {
			t.Errorf("%+v: announced %d times", c, n)
		}
	}
}
