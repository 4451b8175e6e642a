package handout

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/stats"
)

// oracle counts for each row how often it was handed out and neither returned nor lost.
type oracle struct {
	net    []uint64
	runs   map[string][][]int32
	counts stats.Rows
	out    uint64 // rows whose fate is not known yet
}

// take notes a run, and checks that an epoch begins only once each row was handed out in the one before.
func (o *oracle) take(t *rapid.T, by string, rows []int32, before, after uint64) {
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
	o.out += uint64(len(rows))
	if len(rows) > 0 {
		o.runs[by] = append(o.runs[by], rows)
	}
}

// settle settles the first run of a taker, and returns this run.
func (o *oracle) settle(by string, trained, lost int) (run []int32) {
	run, o.runs[by] = o.runs[by][0], o.runs[by][1:]
	trained, lost = min(trained, len(run)), min(lost, len(run)-min(trained, len(run)))
	returned := uint64(len(run) - trained - lost)
	o.out -= uint64(len(run))
	o.counts.Trained += uint64(trained)
	o.counts.Lost += uint64(lost)
	o.counts.Returned += returned
	o.counts.HandedOut -= returned
	for _, row := range run[trained:] {
		o.net[row]--
	}
	return run
}

// TestEachRowOnceAnEpoch: takers come, leave, die, are silent, and return or lose rows. Each row is handed out exactly once an
// epoch, not counting rows that came back. Each row handed out, and not returned, is trained, lost or still out.
func TestEachRowOnceAnEpoch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{Rows: rapid.IntRange(1, 60).Draw(t, "rows"), Policy: Policy(rapid.IntRange(0, 2).Draw(t, "policy")), Seed: rapid.Uint64().Draw(t, "seed")}
		l, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		o := &oracle{net: make([]uint64, c.Rows), runs: map[string][][]int32{}}
		now := time.Duration(0)
		take := func(who string, most int) {
			before := l.epochs
			o.take(t, who, l.Take(who, most, now), before, l.epochs)
		}
		settle := func(who string, trained, lost int) {
			run := o.settle(who, trained, lost)
			trained = min(trained, len(run))
			l.Settle(who, run, trained, min(lost, len(run)-trained), now)
		}
		for range rapid.IntRange(1, 120).Draw(t, "events") {
			who := string(rune('a' + rapid.IntRange(0, 3).Draw(t, "who")))
			now += time.Duration(rapid.IntRange(0, 50).Draw(t, "ms")) * time.Millisecond
			switch rapid.IntRange(0, 9).Draw(t, "event") {
			case 0:
				now += Patience
			case 1:
				for here := len(o.runs[who]); here > 0; here-- {
					settle(who, 0, c.Rows)
				}
				if l.takers[who] != nil {
					l.Leave(who, now)
				}
			case 2, 3, 4:
				if len(o.runs[who]) > 0 {
					settle(who, rapid.IntRange(0, 16).Draw(t, "trained"), rapid.IntRange(0, 16).Draw(t, "lost"))
				}
			default:
				take(who, rapid.IntRange(1, 16).Draw(t, "most"))
			}
			o.counts.TakenBack = l.counts.TakenBack
			if l.Counts() != o.counts || l.Counts().Outstanding() != o.out || l.Out(who) != len(o.runs[who]) {
				t.Fatalf("counts %+v, want %+v", l.Counts(), o.counts)
			}
		}
		// Somebody always gets rows: all ask in turn, and an epoch ends, though those that went before may not ask again.
		begun := l.epochs
		for range 2*(c.Rows+int(l.Counts().HandedOut)) + 2 { // all that came back come again
			now += Patience / 4
			for _, who := range []string{"a", "e"} {
				take(who, 4)
			}
		}
		if l.epochs <= begun {
			t.Fatalf("epoch %d does not end although all ask", begun)
		}
	})
}

// TestASilentTakerIsNotWaitedFor: a taker that does not ask for its share loses it to the others, once they have to wait. It takes
// part again when it asks.
func TestASilentTakerIsNotWaitedFor(t *testing.T) {
	l, _ := New(Config{Rows: 40, Policy: RoundRobin})
	come(l, "slow", "fast")
	l.Take("slow", 1, 0)
	for len(l.Take("fast", 4, Patience)) > 0 {
	}
	left := 40 - l.counts.HandedOut
	if left < 3 || l.counts.TakenBack != 0 {
		t.Errorf("before its time: %+v", l.counts)
	}
	for len(l.Take("fast", 4, Patience+1)) > 0 && l.epochs == 1 {
	}
	if l.counts.TakenBack != left || l.epochs != 2 || l.takers["slow"].share != nil {
		t.Errorf("epoch %d, %d rows were kept for one that is silent: %+v", l.epochs, left, l.counts)
	}
	if got := l.Take("slow", 4, Patience+3); len(got) == 0 {
		t.Error("who asks again gets nothing")
	}
}

// come lets new takers take part.
func come(l *Ledger, names ...string) {
	for _, name := range names {
		l.takers[name] = &taker{}
	}
}

// TestSamplesGoRound: sample i goes to node i mod N, in the order of the epoch, which the seed decides alone.
func TestSamplesGoRound(t *testing.T) {
	c := Config{Rows: 10, Policy: RoundRobin, Seed: 7}
	l, _ := New(c)
	all := []string{"a", "b", "c"}
	come(l, all...)
	order := c.Order(0)
	for i, by := range all {
		var want []int32
		for at := i; at < len(order); at += len(all) {
			want = append(want, order[at])
		}
		got := l.Take(by, 3, 0)
		if i == 0 {
			got = append(got, l.Take(by, 3, 0)...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is given %v, want %v", by, got, want)
		}
	}
	if slices.Equal(order, c.Order(1)) || slices.Equal(order, Config{Rows: 10, Seed: 8}.Order(0)) || !slices.Equal(order, c.Order(0)) {
		t.Error("the order is not one of the seed and the epoch")
	}
	if l.Take("a", 3, 0); l.epochs != 2 {
		t.Errorf("epoch %d", l.epochs)
	}
}

// TestWhatNoLedgerIsOf: New refuses no rows, too many rows, and unknown policies.
func TestWhatNoLedgerIsOf(t *testing.T) {
	for _, c := range []Config{{}, {Rows: -1}, {Rows: 1, Policy: 3}, {Rows: math.MaxInt}} {
		if _, err := New(c); err == nil {
			t.Errorf("a ledger of %+v", c)
		}
	}
}

// TestWhoGoesRound: slow takers are left out of a round robin if the others finish earlier without them. No taker
// gets less than a batch.
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
		weights := rapid.SliceOfN(rapid.Float64Range(1e-9, 1e9), 1, 20).Draw(t, "weights")
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

// TestADrawIsOfAllRows: sources are drawn in proportion to their rows, and the seed decides the draw.
func TestADrawIsOfAllRows(t *testing.T) {
	rows, sum, n := []uint64{0, 10, 30, 60}, make([]int, 4), 20_000
	chance := rand.New(rand.NewPCG(1, 2))
	for range n / 20 {
		for i, parts := range Draw(chance, []uint32{15, 0, 5}, rows) {
			sum[i] += int(parts[0] + parts[1] + parts[2])
		}
	}
	for i, k := range sum {
		p := float64(rows[i]) / 100
		if off := math.Abs(float64(k) - p*float64(n)); off > 5*math.Sqrt(p*(1-p)*float64(n)) {
			t.Errorf("source %d is drawn %d times of %d, want %g of them", i, k, n, p)
		}
	}
	draw := func() [][]uint32 { return Draw(rand.New(rand.NewPCG(1, 2)), []uint32{50, 7}, rows) }
	if a, b := draw(), draw(); !slices.EqualFunc(a, b, slices.Equal) || a[1][1]+a[2][1]+a[3][1] != 7 {
		t.Errorf("one seed draws %v and %v", a, b)
	}
}

// course lets takers of different speeds take batches of 10 from 4,000 rows until an epoch has been handed out, each with up
// to ahead runs at once. It returns when each has trained on its last run of the epoch.
func course(l *Ledger, steps map[string]time.Duration, now time.Duration) map[string]time.Duration {
	return courseOf(l, steps, now, map[string]int{})
}

// courseOf is course, and adds what each is handed out.
func courseOf(l *Ledger, steps map[string]time.Duration, now time.Duration, given map[string]int) map[string]time.Duration {
	const ahead = 4
	type at struct {
		runs [][]int32
		done time.Duration // of the first of them
	}
	state, ends := map[string]*at{}, map[string]time.Duration{}
	order := slices.SortedFunc(maps.Keys(steps), func(a, b string) int { return int(steps[a] - steps[b]) })
	for _, t := range order {
		state[t] = &at{}
	}
	epoch, over := l.epochs+1, false
	for {
		first := ""
		for _, t := range order {
			s := state[t]
			for len(s.runs) < ahead && !over {
				if l.epochs == epoch && len(l.spare)+l.left == 0 {
					over = true
					break
				}
				run := l.Take(t, 10, now)
				if run == nil {
					break
				}
				if len(s.runs) == 0 {
					s.done = now + steps[t]
				}
				s.runs = append(s.runs, run)
				given[t] += len(run)
			}
			if len(s.runs) > 0 && (first == "" || s.done < state[first].done) {
				first = t
			}
		}
		if first == "" {
			return ends
		}
		s := state[first]
		now = s.done
		l.Settle(first, s.runs[0], len(s.runs[0]), 0, now)
		s.runs, s.done, ends[first] = s.runs[1:], now+steps[first], now
	}
}

// TestUnlikeSpeedsEndTogether: one taker is four times as fast as another. With shares by speed, all end each epoch, the
// first included, within a tenth of each other; with equal shares they do not.
func TestUnlikeSpeedsEndTogether(t *testing.T) {
	steps := map[string]time.Duration{"a": 10 * time.Millisecond, "b": 20 * time.Millisecond, "c": 40 * time.Millisecond}
	apart := func(policy Policy, epochs int) float64 {
		l, _ := New(Config{Rows: 4000, Policy: policy, Seed: 3})
		come(l, slices.Collect(maps.Keys(steps))...)
		var began, ended time.Duration
		var ends map[string]time.Duration
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

// TestASlowTakerHoldsUpNobody: a taker that seldom asks for single rows, and is done with each at once, does not keep its share
// from one that trains all the time.
func TestASlowTakerHoldsUpNobody(t *testing.T) {
	for _, policy := range []Policy{RoundRobin, Speed} {
		l, err := New(Config{Rows: 10_000, Policy: policy, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		trained := 0
		for second := range 3600 {
			now := time.Duration(second) * time.Second
			if second%25 == 0 {
				if run := l.Take("slow", 1, now); len(run) > 0 {
					l.Settle("slow", run, len(run), 0, now)
				}
			}
			if run := l.Take("fast", 100, now); len(run) > 0 {
				l.Settle("fast", run, len(run), 0, now+time.Second/2)
				trained += len(run)
			}
		}
		if trained < 180_000 { // of 360,000
			t.Errorf("policy %d: the fast one has trained on %d rows", policy, trained)
		}
	}
}

// TestASpoiltRowIsLeftOut: an epoch ends without a row that cannot be read, and the row is counted once.
func TestASpoiltRowIsLeftOut(t *testing.T) {
	l, err := New(Config{Rows: 10, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		switch run := l.Take("taker", 3, 0); slices.Index(run, 7) {
		case 0:
			l.Spoilt("taker", run, 0)
		case -1:
			l.Settle("taker", run, len(run), 0, 0)
		default: // up to it
			l.Settle("taker", run, slices.Index(run, 7), 0, 0)
		}
	}
	if c := l.Counts(); c.Trained < 9*c.Lost-9 || c.Trained > 9*c.Lost+9 || c.Lost < 10 || c.HandedOut != c.Trained+c.Lost || c.Outstanding() != 0 {
		t.Errorf("%+v", c)
	}
}

// TestTheLastRowsGoToWhoAsks: with Speed, a taker that has enough and does not ask keeps no rows from one that waits.
func TestTheLastRowsGoToWhoAsks(t *testing.T) {
	l, err := New(Config{Rows: 1000, Policy: Speed, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	l.Take("idle", 100, 0)
	got := 100
	for l.epochs == 1 && got < 1000 {
		run := l.Take("asks", 100, 0)
		if got += len(run); len(run) == 0 {
			break
		}
	}
	if got != 1000 || l.epochs != 1 || l.counts.TakenBack != 0 {
		t.Errorf("%d rows of 1000 are handed out: %+v", got, l.counts)
	}
}
