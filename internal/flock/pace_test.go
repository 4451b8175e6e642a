package flock

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// paced is a flock of four, whose peer has its share of 100 behind it.
func paced(t *testing.T) (f *Flock, at func(after time.Duration) time.Time, hear func(after time.Duration, steps ...uint64)) {
	f, began := New("me"), time.Unix(1e9, 0)
	at = func(after time.Duration) time.Time { return began.Add(after) }
	hear = func(after time.Duration, steps ...uint64) {
		t.Helper()
		var members []transport.Record
		for i, n := range steps {
			members = append(members, record(string(rune('b'+i)), n))
		}
		f.Observe(members, at(after))
	}
	hear(0, 0, 0, 0)
	f.steps.Store(100)
	return f, at, hear
}

const all = 400

// TestAPeerTakesItsShare: whatever it hears of the others.
func TestAPeerTakesItsShare(t *testing.T) {
	f, at, _ := paced(t)
	for steps, want := range map[uint64]bool{0: true, 99: true, 100: false} {
		if f.steps.Store(steps); f.May(all, at(0)) != want {
			t.Errorf("after %d steps of a share of 100: another is allowed: %v", steps, !want)
		}
	}
	if f.steps.Store(100); !f.May(all+1, at(0)) {
		t.Error("nobody takes the last step of 401")
	}
}

// TestAPeerTakesOverWhatIsLeft by members that have not begun in time, are slow, have fallen
// silent or departed.
func TestAPeerTakesOverWhatIsLeft(t *testing.T) {
	const lag = 4 * NewsTick / newsShare
	for name, c := range map[string]struct {
		news  func(hear func(time.Duration, ...uint64))
		after time.Duration // when there is leave, and not just before
	}{
		"none has begun": {func(func(time.Duration, ...uint64)) {}, Beginning + lag},
		"all are slow": {func(hear func(time.Duration, ...uint64)) {
			hear(time.Second, 1, 1, 1)
			hear(2*time.Second, 2, 2, 2)
		}, 2 * time.Second},
		"one goes on, and falls silent": {func(hear func(time.Duration, ...uint64)) {
			hear(time.Second, 90, 90, 5)
			hear(2*time.Second, 100, 100, 55)
		}, 2*time.Second + silent + time.Second}, // as long as between its last two
		"one leaves": {func(hear func(time.Duration, ...uint64)) {
			hear(time.Second, 100, 100, 10)
			hear(2*time.Second, 100, 100)
		}, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f, at, hear := paced(t)
			if c.after > Beginning && f.May(all, at(c.after-1)) {
				t.Error("it does not wait for those that have not begun")
			}
			c.news(hear)
			if c.after > 2*time.Second && f.May(all, at(c.after-1)) {
				t.Error("it does not wait")
			}
			if !f.May(all, at(c.after)) {
				t.Error("it waits for ever")
			}
		})
	}
}

// TestAMemberIsLeftWhatItCanDo: of its share before there is news, at twice its speed; and
// nobody waits with more than is left.
func TestAMemberIsLeftWhatItCanDo(t *testing.T) {
	f, at, hear := paced(t)
	hear(time.Second, 50, 100, 100)
	hear(2*time.Second, 80, 100, 100) // 30 steps a second: 18 in twice the time to the next news
	for steps, want := range map[uint64]bool{101: true, 102: false} {
		if f.steps.Store(steps); f.May(all, at(2*time.Second)) != want {
			t.Errorf("after %d steps: another is allowed: %v", steps, !want)
		}
	}
	if !f.NewsDue(NewsEvery(4), 1, all) || f.NewsDue(NewsEvery(4)-1, 1, all) {
		t.Error("its own news are due before their time, or not when it has come")
	}
	if f.Wait(true); !f.NewsDue(NewsEvery(4)/2, 1, all) {
		t.Error("a peer that waits tells nobody how far it is")
	}
}

// TestWhoHasNotBegunIsNotSlow: members that were there for long before they train are waited for as are those
// that come.
func TestWhoHasNotBegunIsNotSlow(t *testing.T) {
	f, began := New("me"), time.Unix(1e9, 0)
	idle, trains := record("b", 0), record("b", 0)
	idle.Flags = Idle
	f.Observe([]transport.Record{idle}, began)
	f.Observe([]transport.Record{idle}, began.Add(time.Minute))
	f.Observe([]transport.Record{trains}, began.Add(2*time.Minute))
	if f.steps.Store(5); f.May(10, began.Add(2*time.Minute)) {
		t.Error("what another is to do is taken over before it can begin")
	}
	if !f.May(10, began.Add(3*time.Minute)) {
		t.Error("one that does not begin is waited for")
	}
}

// TestWhoStopsAndBeginsAgainAndAgainHoldsNobodyUp: one that says in turn that it trains and that it does not
// is waited for a few seconds of each minute.
func TestWhoStopsAndBeginsAgainAndAgainHoldsNobodyUp(t *testing.T) {
	f, began := New("self"), time.Unix(1, 0)
	waited := 0
	f.steps.Store(5)
	for s := range 300 {
		one := record("b", 0)
		now := began.Add(time.Duration(s) * time.Second)
		if s%2 == 1 {
			one.Flags = Idle
		}
		f.Observe([]transport.Record{one}, now)
		if s%2 == 0 && !f.May(10, now) {
			waited++
		}
	}
	if waited > 20 {
		t.Errorf("held up at %d of 150 looks", waited)
	}
}

// TestHowFastOneIsIsKnownSoon: far from the end too, one that has begun announces its second step, its fourth and so on; steps of an
// earlier life do not count.
func TestHowFastOneIsIsKnownSoon(t *testing.T) {
	f := New("me")
	for _, c := range []struct {
		resumed, steps, more uint64
		want                 bool
	}{{0, 2, 1, true}, {0, 3, 1, false}, {0, 200, 100, true}, {0, 200, 99, false}, {100, 101, 1, true}, {100, 103, 1, false}} {
		f.steps.Store(c.steps)
		f.resumed.Store(c.resumed)
		for _, target := range []uint64{0, 1e6} {
			if f.NewsDue(NewsEvery(1), c.more, target) != c.want || f.NewsDue(NewsEvery(1)-1, c.more, target) {
				t.Errorf("%+v, of %d: due %v, or too soon", c, target, !c.want)
			}
		}
	}
}
