package sums

import (
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	deaths    = flag.Int("deaths", 500, "how many random deaths TestASumSurvivesDeaths tries")
	firstSeed = flag.Uint64("seed", 1, "where TestASumSurvivesDeaths begins")
	masks     = flag.Bool("masks", false, "have TestASumSurvivesDeaths add with masks")
	meetings  = flag.Int("meetings", 200, "how many flocks TestMembersThatFindEachOther tries")
)

// TestSumsOfAll shows that sums of several lengths and operations come out, the same for
// all, for flocks of one to nine.
func TestSumsOfAll(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for _, length := range []int{0, 1, 5, 1000, 40000} {
			w := newWorld(t, uint64(n), n)
			for _, m := range w.members {
				for i := range 5 {
					m.calls = append(m.calls, callOf(m, i, length))
				}
				w.after(w.upTo(time.Second), m.next)
			}
			w.run(time.Minute)
			w.check(uint64(n), 5)
			if w.now > 20*time.Second {
				t.Errorf("%d members need %v for sums of %d", n, w.now, length)
			}
		}
	}
}

// TestASumMovesAtMostTwiceItsBytes shows that what each sends does not grow with the flock.
func TestASumMovesAtMostTwiceItsBytes(t *testing.T) {
	for _, n := range []int{2, 4, 8, 16} {
		const length = 1 << 17
		w := newWorld(t, 1, n)
		for _, m := range w.members {
			m.calls = []Call{callOf(m, 0, length)}
			w.after(0, m.next)
		}
		w.run(time.Minute)
		w.check(1, 1)
		ratio := float64(w.sent) / float64(n) / (8 * length)
		if ratio > 2.1 {
			t.Errorf("%d members send %.3f of what they bring each", n, ratio)
		}
	}
}

// TestASumSurvivesDeaths kills members after anything that they do in some sums, coordinators among them.
// Survivors all have the same results, of themselves and of whom it was too late to leave out. Where one
// lies, too, they have the same or an error, each within the time that is promised.
func TestASumSurvivesDeaths(t *testing.T) {
	seed, killed := *firstSeed, 0
	var lied lied
	for ; killed < *deaths; seed++ {
		killed += diesAt(t, seed, seed%2 == 0, 5, *masks)
		killed += liesAt(t, seed, &lied, *masks)
		if t.Failed() {
			t.Fatalf("after %d deaths", killed)
		}
	}
	t.Logf("%d deaths; beside %d liars %d calls of honest ones, %d with a result, the longest %s, at most %.0f %% of what is promised",
		killed, lied.liars, lied.calls, lied.made, lied.longest, 100*lied.share)
}

// diesAt runs the world of a seed in which members die, and returns how many did. Where words are
// slow, they are on their way for longer than others need to find out and to ask.
func diesAt(t *testing.T, seed uint64, slow bool, sums int, masked bool) (killed int) {
	n := 2 + int(seed%6)
	w := newWorld(t, seed, n).hides(masked).over(seed / 6)
	if slow {
		w.delay, w.noticed = 100*time.Millisecond, 50*time.Millisecond
	}
	for _, m := range w.members {
		for i := range sums {
			m.calls = append(m.calls, m.hidden(callOf(m, i, 100)))
		}
		w.after(w.upTo(20*time.Millisecond), m.next)
	}
	victims := 1 + w.rand.IntN(n-1)
	for _, i := range w.rand.Perm(n)[:victims] {
		w.members[i].dies = 1 + w.rand.IntN(100) // or it lives
	}
	w.run(5 * time.Minute)
	for _, m := range w.members {
		if m.dead {
			killed++
		}
	}
	w.check(seed, sums)
	return killed
}

// TestTheDeathsThatGaveTwoResults repeats what a release before the terms did wrong.
func TestTheDeathsThatGaveTwoResults(t *testing.T) {
	diesAt(t, 229175, false, 4, false)
}

// TestWhoDoesNotComeIsLeftOut shows that those who sum wait for a member that does not call
// for as long as they have patience, and in the next sum no more.
func TestWhoDoesNotComeIsLeftOut(t *testing.T) {
	for idle := range 3 {
		w := newWorld(t, 1, 3)
		for _, m := range w.members {
			if m.index != idle {
				m.calls = []Call{callOf(m, 0, 10), callOf(m, 1, 10)}
				w.after(0, m.next)
			}
		}
		w.run(time.Minute)
		for _, m := range w.members {
			if want := 2; m.index != idle && (len(m.results) != want || m.results[1].Err != nil || m.results[1].Peers != 2) {
				t.Errorf("%s: %+v", m.self, m.results)
			}
		}
		if w.now < 10*time.Second || w.now > 14*time.Second {
			t.Errorf("two sums without %d took %v", idle, w.now)
		}
	}
}

// failed runs a world of members with calls, and returns what the errors of all wrap.
func failed(t *testing.T, calls ...Call) (errs []error) {
	w := newWorld(t, 1, len(calls))
	for i, m := range w.members {
		m.calls = []Call{calls[i]}
		w.after(w.upTo(time.Second), m.next)
	}
	w.run(time.Minute)
	for _, m := range w.members {
		for _, r := range m.results {
			errs = append(errs, r.Err)
		}
	}
	return errs
}

func TestWhatCannotBeSummedFailsForAll(t *testing.T) {
	a := Call{Name: "x", Vector: make([]float64, 3), Timeout: time.Second}
	longer, other, more := a, a, a
	longer.Vector = make([]float64, 4)
	other.Op = Max
	more.Least = 4
	for _, c := range []struct {
		calls []Call
		want  error
	}{
		{[]Call{a, a, longer}, ErrMismatch},
		{[]Call{other, a, a}, ErrMismatch},
		{[]Call{a, more, a}, ErrTooFew},
	} {
		errs := failed(t, c.calls...)
		if len(errs) != 3 || slices.ContainsFunc(errs, func(err error) bool { return !errors.Is(err, c.want) }) {
			t.Errorf("%v, want %v for all", errs, c.want)
		}
	}
}

// TestWhoComesLateIsTold shows that a name is used once.
func TestWhoComesLateIsTold(t *testing.T) {
	w := newWorld(t, 1, 3)
	for _, m := range w.members {
		m.calls = []Call{{Name: "x", Vector: []float64{1}, Timeout: time.Second}}
		if m.index == 2 {
			w.after(10*time.Second, m.next)
		} else {
			w.after(0, m.next)
		}
	}
	w.run(time.Minute)
	if r := w.members[2].results; len(r) != 1 || !errors.Is(r[0].Err, ErrOver) {
		t.Errorf("who came late has %+v", r)
	}
	if r := w.members[0].results; len(r) != 1 || r[0].Peers != 2 {
		t.Errorf("those who did not have %+v", r)
	}
}

// TestWhoThawsHearsWhyItWasLeftOut shows that a member which stood still in the middle of a sum
// is told so, not that it came too late.
func TestWhoThawsHearsWhyItWasLeftOut(t *testing.T) {
	w := newWorld(t, 1, 4)
	for _, m := range w.members {
		m.calls = []Call{{Name: "x", Vector: make([]float64, 100), Timeout: time.Second}}
		w.after(0, m.next)
	}
	freeze := func(frozen bool) {
		for other := range 3 {
			w.cut[[2]int{3, other}], w.cut[[2]int{other, 3}] = frozen, frozen
		}
	}
	w.after(20*time.Millisecond, func() {
		if w.members[3].open["x"].own.stage != Placed {
			t.Error("it is to stand still while it has a place")
		}
		freeze(true)
	})
	w.after(time.Minute, func() { freeze(false) })
	w.run(2 * time.Minute)
	if r := w.members[0].results; len(r) != 1 || r[0].Peers != 3 {
		t.Fatalf("those who went on have %+v", r)
	}
	if r := w.members[3].results; len(r) != 1 || !errors.Is(r[0].Err, ErrOver) || !strings.Contains(r[0].Err.Error(), "stood still") {
		t.Errorf("who thawed has %+v", r)
	}
}

// TestWhoGivesUpIsLeftOut shows that a sum goes on without a caller that has given it up.
func TestWhoGivesUpIsLeftOut(t *testing.T) {
	w := newWorld(t, 1, 3)
	for _, m := range w.members[:2] {
		m.calls = []Call{{Name: "x", Vector: []float64{1}, Timeout: 5 * time.Second}}
		w.after(0, m.next)
	}
	w.after(time.Second, func() { w.members[0].Cancel(w.now, "x"); w.members[0].settle() })
	w.run(time.Minute)
	if r := w.members[1].results; len(r) != 1 || r[0].Err != nil || r[0].Peers != 1 {
		t.Errorf("who is left has %+v", r)
	}
	if len(w.members[0].results) != 0 {
		t.Errorf("who gave up has %+v", w.members[0].results)
	}
}

// TestMembersThatFindEachOther shows that members whose views grow one by one, and in another
// order at each, make one sum of all if it needs all.
func TestMembersThatFindEachOther(t *testing.T) {
	for seed := range uint64(*meetings) {
		n := 2 + int(seed%5)
		w := newWorld(t, seed, n)
		for _, m := range w.members {
			m.knows = []ID{m.self}
			m.View(0, m.knows)
			for _, other := range w.members {
				w.after(w.upTo(5*time.Second), func() {
					if !slices.Contains(m.knows, other.self) {
						m.knows = append(slices.Clone(m.knows), other.self)
						slices.Sort(m.knows)
						m.View(w.now, m.knows)
						m.settle()
					}
				})
			}
			for i := range 4 {
				call := callOf(m, i, 100)
				call.Least = n
				m.calls = append(m.calls, call)
			}
			w.after(w.upTo(5*time.Second), m.next)
		}
		w.run(time.Minute)
		w.check(seed, 4)
		if t.Failed() {
			return
		}
	}
}

// TestASideOfACutGoesOn shows that of two sides that cannot reach each other only the one with
// the least number that is asked for has a sum.
func TestASideOfACutGoesOn(t *testing.T) {
	for seed := range uint64(50) {
		w := newWorld(t, seed, 5)
		for _, m := range w.members {
			for i := range 2 {
				call := callOf(m, i, 100)
				call.Least, call.Timeout = 3, 3*time.Second
				m.calls = append(m.calls, call)
			}
			side := func(other ID) bool { return (slices.Index(w.members[0].all(), other) < 3) == (m.index < 3) }
			w.after(0, func() { m.see(slices.DeleteFunc(m.all(), func(id ID) bool { return !side(id) })) })
			w.after(w.upTo(time.Second), m.next)
		}
		w.run(time.Minute)
		for _, m := range w.members {
			whole := m.index < 3
			if r := m.results[0]; whole && (r.Err != nil || r.Peers != 3) || !whole && !errors.Is(r.Err, ErrTooFew) {
				t.Fatalf("seed %d: %s has %+v", seed, m.self, r)
			}
		}
	}
}

// TestManyMembersFarApart shows that a sum whose messages take their way over far links has
// the time for them.
func TestManyMembersFarApart(t *testing.T) {
	const n = 250
	w := newWorld(t, 1, n)
	w.delay = 400 * time.Millisecond
	for _, m := range w.members {
		m.calls = []Call{callOf(m, 0, 1)}
		m.calls[0].Timeout = time.Minute
		w.after(0, m.next)
	}
	w.run(time.Hour)
	for _, m := range w.members {
		if len(m.results) != 1 || m.results[0].Err != nil || m.results[0].Peers != n {
			t.Fatalf("%s at %s: %+v", m.self, w.now, m.results)
		}
	}
	if w.now > 4*time.Minute {
		t.Errorf("it took %s", w.now)
	}
}
