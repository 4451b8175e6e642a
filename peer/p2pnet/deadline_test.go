package p2pnet

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestDefaultDeadlineMoves: never nearer than the limit when a call begins, never
// further than one and a half, and rarely moved.
func TestDefaultDeadlineMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		moves := 0
		var given time.Time
		d := deadline{limit: time.Hour, set: func(at time.Time) error {
			moves++
			given = at
			return nil
		}}
		for range 1000 {
			if err := d.before(); err != nil {
				t.Fatal(err)
			}
			if left := time.Until(given); left < time.Hour || left > 90*time.Minute {
				t.Fatalf("a call begins with %v left", left)
			}
			time.Sleep(time.Minute)
		}
		if moves > 1000/30+1 {
			t.Errorf("moved %d times in a thousand minutes, want once in half an hour", moves)
		}
	})
}

// TestFrequentDeadlines sets a deadline ahead of every frame, as package peer does.
func TestFrequentDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		moves := 0
		d := deadline{limit: time.Hour, set: func(time.Time) error { moves++; return nil }}
		frame := func() {
			if d.assign(time.Now().Add(30*time.Second)) != nil || d.before() != nil {
				t.Fatal("a deadline to come was refused")
			}
			time.Sleep(time.Millisecond)
		}
		if allocs := testing.AllocsPerRun(10_000, frame); allocs != 0 {
			t.Errorf("%v allocations per frame", allocs)
		}
		if moves > 11 {
			t.Errorf("moved %d times in ten seconds, want once a second", moves)
		}
	})
}

// TestDeadlineIsKept draws deadlines in any order: what yamux is given is never
// earlier than what the caller asked for, and hardly later; and a call past the
// caller's is refused.
func TestDeadlineIsKept(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type step struct {
			ahead, sleep time.Duration
			none         bool
		}
		steps := rapid.SliceOf(rapid.Custom(func(rt *rapid.T) step {
			return step{
				ahead: time.Duration(rapid.Int64Range(-5e9, 100e9).Draw(rt, "ahead")),
				sleep: time.Duration(rapid.Int64Range(0, 20e9).Draw(rt, "sleep")),
				none:  rapid.Bool().Draw(rt, "none"),
			}
		})).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			const limit = 10 * time.Second
			var given time.Time
			d := deadline{limit: limit, set: func(at time.Time) error { given = at; return nil }}
			for i, s := range steps {
				now := time.Now()
				asked, latest := now.Add(s.ahead), now.Add(s.ahead).Add(min(max(s.ahead, 0)/8, maxLate))
				if s.none {
					asked, latest = now.Add(limit), now.Add(limit+limit/2)
					d.assign(time.Time{})
				} else {
					d.assign(asked)
				}
				if given.Before(asked) || given.After(latest) {
					t.Errorf("step %d: yamux has %v, want %v to %v", i, given.Sub(now), asked.Sub(now), latest.Sub(now))
				}
				time.Sleep(s.sleep)
				err := d.before()
				if past := !s.none && !asked.After(time.Now()); (err != nil) != past || (past && !isTimeout(err)) {
					t.Errorf("step %d: a call %v after the deadline: %v", i, time.Since(asked), err)
				}
			}
		})
	})
}
