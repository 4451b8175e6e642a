package checkpoint

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestAge shows that a keeper which has never saved grows old too: otherwise the metric
// would be silent about a folder in which nothing can be saved.
func TestAge(t *testing.T) {
	if age, kept := (*Keeper)(nil).Age(); kept {
		t.Errorf("nothing is kept, and is %v old", age)
	}
	synctest.Test(t, func(t *testing.T) {
		k := NewKeeper(KeeperConfig{})
		time.Sleep(time.Minute)
		if age, kept := k.Age(); !kept || age != time.Minute {
			t.Errorf("a minute after the start without a checkpoint the age is %v, %v", age, kept)
		}
	})
}

// TestRepeat shows that checkpoints are saved by time, however many steps there are in
// it, the first soon after the first step, none where there are no steps, and none after the end.
func TestRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewKeeper(KeeperConfig{Every: 30 * time.Second})
		var steps atomic.Uint64
		saved := 0
		k.running.Go(func() { k.repeat(steps.Load, func() { saved++ }) })
		train := func(per int, lasts time.Duration) (saves int) {
			before := saved
			for range lasts / time.Millisecond {
				steps.Add(uint64(per))
				time.Sleep(time.Millisecond)
			}
			synctest.Wait()
			return saved - before
		}
		if n := train(0, 12*time.Second); n != 0 {
			t.Errorf("%d checkpoints before the first step", n)
		}
		for _, after := range []time.Duration{3, 10, 20, 30, 30} { // the next tick, and from then on as is due
			if n := train(20, after*time.Second-time.Millisecond) + 10*train(20, time.Millisecond); n != 10 {
				t.Errorf("%d checkpoints before %v s have passed, and %d then", n%10, after, n/10)
			}
		}
		if n := train(20, 22*time.Second); n != 0 {
			t.Errorf("%d checkpoints 22 s after the last", n)
		}
		if n := train(0, 38*time.Second); n != 1 {
			t.Errorf("%d checkpoints of the last steps, want 1", n)
		}
		if n := train(0, time.Minute); n != 0 {
			t.Errorf("%d checkpoints without a step", n)
		}
		k.End()
		if n := train(1, time.Minute); n != 0 {
			t.Errorf("%d checkpoints after the end", n)
		}
	})
}
