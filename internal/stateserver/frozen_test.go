package stateserver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/tensor"
)

// copies makes snapshots of a model that has taken so many steps, and counts them.
type copies struct {
	steps uint64
	made  int
}

func (c *copies) freeze() *frozen {
	c.made++
	return newFrozen(make(tensor.Vector, 10), 4, c.steps, time.Now())
}

// TestOneFrozenCopyServesAllNewcomers: and is let go of with the last.
func TestOneFrozenCopyServesAllNewcomers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFreezer()
		model := &copies{steps: 100}
		first, err1 := f.acquire(t.Context(), 90, model.freeze)
		second, err2 := f.acquire(t.Context(), 100, model.freeze)
		if err := errors.Join(err1, err2); err != nil || first != second || model.made != 1 {
			t.Fatalf("%v; the same copy: %v, made %d", err, first == second, model.made)
		}
		f.release(first)
		f.release(second)
		if f.current != nil {
			t.Error("the copy is kept although nobody reads it")
		}
	})
}

// TestThereIsNeverMoreThanOneFrozenCopy: who wants a newer one waits until the
// readers of the old one have gone, which are told to.
func TestThereIsNeverMoreThanOneFrozenCopy(t *testing.T) {
	for name, c := range map[string]struct {
		wants uint64
		after time.Duration
	}{"older in steps": {200, 2 * time.Second}, "older in time": {0, frozenMost}, "only just frozen": {200, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFreezer()
				model := &copies{steps: 100}
				old, err := f.acquire(t.Context(), 0, model.freeze)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				time.Sleep(c.after)
				model.steps = 300
				got := make(chan *frozen)
				go func() {
					s, _ := f.acquire(t.Context(), c.wants, model.freeze)
					got <- s
				}()
				<-old.retired
				if time.Since(began) < frozenLeast {
					t.Errorf("replaced after %s", time.Since(began))
				}
				synctest.Wait()
				if model.made != 1 {
					t.Errorf("%d copies at once", model.made)
				}
				f.release(old)
				if s := <-got; s == old || s.steps != 300 || model.made != 2 {
					t.Errorf("got one of %d steps, %d made", s.steps, model.made)
				}
			})
		})
	}
}

// TestAReaderThatStaysCostsTheNextItsPatience: no more.
func TestAReaderThatStaysCostsTheNextItsPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFreezer()
		model := &copies{steps: 100}
		if _, err := f.acquire(t.Context(), 0, model.freeze); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if s, err := f.acquire(ctx, 200, model.freeze); s != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, %v", s, err)
		}
	})
}

// TestComingAndGoingFreezesNothingAnew: who asks for the model and leaves, a thousand times
// a second, has it copied once in that time.
func TestComingAndGoingFreezesNothingAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFreezer()
		model := &copies{steps: 100}
		for range 5000 {
			within, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if s, err := f.acquire(within, 0, model.freeze); err == nil {
				f.release(s)
			}
			time.Sleep(time.Millisecond)
			cancel()
		}
		if model.made > 12 {
			t.Errorf("the model was copied %d times in ten seconds, want one a second", model.made)
		}
	})
}
