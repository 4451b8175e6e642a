package handout

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// oracle counts each row for itself: how often it was handed out and not given back or lost.
type oracle struct {
	net    []uint64
	runs   map[Taker]map[uint64][]int32
	counts Counts
}

// take notes a run, and checks that an epoch begins only once each row was handed out in the one before.
func (o *oracle) take(t *rapid.T, by Taker, run uint64, rows []int32, before, after uint64) {
	if after > before {
		for row, n := range o.net {
			if n != before {
				t.Fatalf("epoch %d begins, and row %d has been handed out %d times", after, row, n)
			}
		}
	}
	for _, row := range rows {
		if o.net[row]++; o.net[row] > after {
			t.Fatalf("row %d is handed out twice in epoch %d", row, after)
		}
	}
	o.counts.HandedOut += uint64(len(rows))
	o.counts.Outstanding += uint64(len(rows))
	if len(rows) > 0 {
		o.runs[by][run] = rows
	}
}

func (o *oracle) settle(by Taker, run uint64, fate Fate) {
	rows := o.runs[by][run]
	delete(o.runs[by], run)
	n := uint64(len(rows))
	o.counts.Outstanding -= n
	switch fate {
	case Trained:
		o.counts.Trained += n
		return
	case Returned:
		o.counts.HandedOut -= n
	case Lost:
		o.counts.Lost += n
	}
	for _, row := range rows {
		o.net[row]--
	}
}

// TestEachRowOnceAnEpoch: whoever comes, goes, dies, gives back or loses rows, each row is handed out exactly once
// an epoch, beside those that come back; and what was handed out is trained, lost, or still out.
func TestEachRowOnceAnEpoch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{Rows: rapid.IntRange(1, 60).Draw(t, "rows"), Policy: Policy(rapid.IntRange(0, 2).Draw(t, "policy")), Seed: rapid.Uint64().Draw(t, "seed")}
		l, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		o := &oracle{net: make([]uint64, c.Rows), runs: map[Taker]map[uint64][]int32{}}
		next, now, waited := uint64(0), time.Duration(0), 0
		for range rapid.IntRange(1, 120).Draw(t, "events") {
			who := Taker{Name: string(rune('a' + rapid.IntRange(0, 3).Draw(t, "who")))}
			now += time.Duration(rapid.IntRange(0, 50).Draw(t, "ms")) * time.Millisecond
			switch here := o.runs[who] != nil; rapid.IntRange(0, 9).Draw(t, "event") {
			case 0:
				l.Enter(who)
				if !here {
					o.runs[who] = map[uint64][]int32{}
				}
			case 1:
				want := 0
				for _, run := range slices.Collect(maps.Keys(o.runs[who])) {
					want += len(o.runs[who][run])
					o.settle(who, run, Lost)
				}
				delete(o.runs, who)
				if lost := l.Leave(who); lost != want {
					t.Fatalf("%d are lost with %s, want %d", lost, who.Name, want)
				}
			case 2, 3, 4:
				for _, run := range slices.Sorted(maps.Keys(o.runs[who])) {
					fate := Fate(rapid.IntRange(1, 3).Draw(t, "fate"))
					o.settle(who, run, fate)
					if err := l.Settle(who, run, fate, now); err != nil {
						t.Fatal(err)
					}
					break
				}
			default:
				next++
				before := l.Counts().Epoch
				rows := l.Take(who, next, rapid.IntRange(1, 16).Draw(t, "most"))
				if !here && rows != nil {
					t.Fatal("one that has not come is given rows")
				}
				if here {
					o.take(t, who, next, rows, before, l.Counts().Epoch)
				}
				if waited++; rows != nil {
					waited = 0
				}
			}
			o.counts.Epoch = l.Counts().Epoch
			if l.Counts() != o.counts || o.counts.HandedOut != o.counts.Trained+o.counts.Lost+o.counts.Outstanding {
				t.Fatalf("counts %+v, want %+v", l.Counts(), o.counts)
			}
		}
		if len(o.runs) == 0 {
			return
		}
		// Somebody always gets rows: all that are here ask in turn, and an epoch ends.
		begun := l.Counts().Epoch
		for range 2*(c.Rows+int(l.Counts().HandedOut)) + 2 { // all that came back come again
			for who := range o.runs {
				next++
				l.Take(who, next, 4)
			}
		}
		if l.Counts().Epoch <= begun {
			t.Fatalf("epoch %d does not end although all ask", begun)
		}
	})
}

// TestSamplesGoRound: sample i goes to node i mod N, in the order of the epoch, which the seed decides alone.
func TestSamplesGoRound(t *testing.T) {
	c := Config{Rows: 10, Policy: RoundRobin, Seed: 7}
	l, _ := New(c)
	all := []Taker{{"a", 0}, {"b", 0}, {"c", 0}}
	for _, t := range all {
		l.Enter(t)
	}
	order := c.Order(0)
	for i, by := range all {
		var want []int32
		for at := i; at < len(order); at += len(all) {
			want = append(want, order[at])
		}
		got := l.Take(by, 1, 3)
		if i == 0 {
			got = append(got, l.Take(by, 2, 3)...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is given %v, want %v", by.Name, got, want)
		}
	}
	if slices.Equal(order, c.Order(1)) || slices.Equal(order, Config{Rows: 10, Seed: 8}.Order(0)) || !slices.Equal(order, c.Order(0)) {
		t.Error("the order is not one of the seed and the epoch")
	}
	if l.Take(all[0], 3, 1); l.Counts().Epoch != 2 {
		t.Errorf("epoch %d", l.Counts().Epoch)
	}
}

// TestFaultsOfTakers: what a taker tells that is not so is an error, and changes nothing.
func TestFaultsOfTakers(t *testing.T) {
	l, _ := New(Config{Rows: 8})
	a, b := Taker{Name: "a"}, Taker{Name: "b"}
	l.Enter(a)
	l.Enter(a)
	rows := l.Take(a, 1, 4)
	before := l.Counts()
	for what, err := range map[string]error{
		"a run of another": l.Settle(b, 1, Trained, 0), "no run": l.Settle(a, 2, Trained, 0),
		"no fate": l.Settle(a, 1, 0, 0), "a fate that is none": l.Settle(a, 1, 4, 0),
	} {
		if !errors.Is(err, ErrRun) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if l.Take(a, 1, 4) != nil || l.Take(a, 2, 0) != nil || l.Leave(b) != 0 || l.Counts() != before || len(rows) != 4 || l.Outstanding(a) != 1 || l.Outstanding(b) != 0 {
		t.Errorf("counts %+v, before %+v", l.Counts(), before)
	}
	for _, c := range []Config{{}, {Rows: -1}, {Rows: 1, Policy: 3}, {Rows: math.MaxInt}} {
		if _, err := New(c); err == nil {
			t.Errorf("a ledger of %+v", c)
		}
	}
}

// TestWhoGoesRound: slow takers are left out of a round robin where the rest are sooner done without them, and
// none gets less than a batch.
func TestWhoGoesRound(t *testing.T) {
	for _, c := range []struct {
		speeds []float64
		volume int
		want   string
	}{
		{[]float64{1}, 1, "[0]"},
		{[]float64{1, 1, 1, 0.7}, 9, "[0 1 2 3]"}, // 2.8 for 3
		{[]float64{1, 0.1, 1, 1}, 9, "[0 2 3]"},
		{[]float64{0.1, 0.1, 1}, 9, "[2]"},
		{[]float64{3, 1, 2}, 2, "[0 2]"},
		{[]float64{1, 1}, 1, "[0]"},
	} {
		if got := fmt.Sprint(Choose(c.speeds, c.volume)); got != c.want {
			t.Errorf("of %v by %d: %s, want %s", c.speeds, c.volume, got, c.want)
		}
	}
}

// TestSharesLeaveNoRemainder: shares add up to all, and none is more than one off its proportion.
func TestSharesLeaveNoRemainder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(0, 1<<31-1).Draw(t, "rows")
		weights := rapid.SliceOfN(rapid.Float64Range(0, 1e9), 1, 20).Draw(t, "weights")
		weights = append(weights, rapid.Float64Range(1e-9, 1).Draw(t, "least"))
		sum, all := 0.0, 0
		for _, w := range weights {
			sum += w
		}
		for i, n := range Shares(rows, weights) {
			if exact := float64(rows) * weights[i] / sum; math.Abs(float64(n)-exact) > 1.001 {
				t.Fatalf("share %d is %d, exactly %g", i, n, exact)
			}
			all += n
		}
		if all != rows {
			t.Fatalf("%d rows of %d", all, rows)
		}
	})
}

// TestADrawIsOfAllRows: sources are drawn in proportion to their rows, by the seed.
func TestADrawIsOfAllRows(t *testing.T) {
	rows, sum, n := []uint64{0, 10, 30, 60}, make([]int, 4), 20_000
	chance := rand.New(rand.NewPCG(1, 2))
	for range n / 20 {
		for i, k := range Draw(chance, 20, rows) {
			sum[i] += k
		}
	}
	for i, k := range sum {
		p := float64(rows[i]) / 100
		if off := math.Abs(float64(k) - p*float64(n)); off > 5*math.Sqrt(p*(1-p)*float64(n)) {
			t.Errorf("source %d is drawn %d times of %d, want %g of them", i, k, n, p)
		}
	}
	if a, b := Draw(rand.New(rand.NewPCG(1, 2)), 50, rows), Draw(rand.New(rand.NewPCG(1, 2)), 50, rows); !slices.Equal(a, b) {
		t.Errorf("one seed draws %v and %v", a, b)
	}
}

// course lets takers of unlike speed take batches of 10 from 4,000 rows until an epoch has been handed out, each with up to
// ahead runs at once, and gives the moment at which each has trained its last one of it.
func course(l *Ledger, steps map[Taker]time.Duration, now time.Duration) map[Taker]time.Duration {
	const ahead = 4
	type at struct {
		runs []uint64
		done time.Duration // of the first of them
	}
	next, state, ends := uint64(now), map[Taker]*at{}, map[Taker]time.Duration{}
	order := slices.SortedFunc(maps.Keys(steps), func(a, b Taker) int { return int(steps[a] - steps[b]) })
	for _, t := range order {
		state[t] = &at{}
	}
	epoch, over := l.Counts().Epoch+1, false
	for {
		var first Taker
		for _, t := range order {
			s := state[t]
			for len(s.runs) < ahead && !over {
				if c := l.Counts(); c.Epoch == epoch && len(l.spare)+l.left == 0 {
					over = true
					break
				}
				next++
				if l.Take(t, next, 10) == nil {
					break
				}
				if len(s.runs) == 0 {
					s.done = now + steps[t]
				}
				s.runs = append(s.runs, next)
			}
			if len(s.runs) > 0 && (first == Taker{} || s.done < state[first].done) {
				first = t
			}
		}
		if (first == Taker{}) {
			return ends
		}
		s := state[first]
		now = s.done
		_ = l.Settle(first, s.runs[0], Trained, now)
		s.runs, s.done, ends[first] = s.runs[1:], now+steps[first], now
	}
}

// TestUnlikeSpeedsEndTogether: with shares by speed, takers of which one is four times as fast as another end an epoch
// within a tenth of each other, the first one too; with equal shares they do not.
func TestUnlikeSpeedsEndTogether(t *testing.T) {
	steps := map[Taker]time.Duration{{"a", 0}: 10 * time.Millisecond, {"b", 0}: 20 * time.Millisecond, {"c", 0}: 40 * time.Millisecond}
	apart := func(policy Policy, epochs int) float64 {
		l, _ := New(Config{Rows: 4000, Policy: policy, Seed: 3})
		for by := range steps {
			l.Enter(by)
		}
		var began, ended time.Duration
		var ends map[Taker]time.Duration
		for range epochs {
			began = ended
			ends = course(l, steps, began)
			ended = slices.Max(slices.Collect(maps.Values(ends)))
		}
		first := slices.Min(slices.Collect(maps.Values(ends)))
		return float64(ended-first) / float64(ended-began)
	}
	for epochs := 1; epochs <= 3; epochs++ {
		if by := apart(Speed, epochs); by > 0.1 {
			t.Errorf("epoch %d ends for one %.0f %% before the other", epochs, 100*by)
		}
	}
	if by := apart(RoundRobin, 1); by < 0.5 {
		t.Errorf("equal shares end within %.0f %%: there is nothing to show", 100*by)
	}
}
