package sums

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// lie says something in the place of an outcome that is none of its own results.
type lie func(m *member, o Outcome)

// says changes a word, and drops it where change reports false.
func says(kind wire.SumKind, change func(m *member, w *wire.Sum) bool) lie {
	return func(m *member, o Outcome) {
		if o.Message != nil && o.Message.Kind == kind {
			w := *o.Message
			if o.Message = &w; !change(m, &w) {
				return
			}
		}
		m.world.carry(m, o)
	}
}

func drops(kinds ...wire.SumKind) lie {
	return func(m *member, o Outcome) {
		if o.Message == nil || !slices.Contains(kinds, o.Message.Kind) {
			m.world.carry(m, o)
		}
	}
}

// adds says more beside each STATUS.
func adds(more func(m *member, w *wire.Sum) *wire.Sum) lie {
	return func(m *member, o Outcome) {
		m.world.carry(m, o)
		if o.Message != nil && o.Message.Kind == wire.SumStatus && m.world.rand.IntN(4) == 0 {
			m.world.carry(m, Outcome{To: o.To, Message: more(m, o.Message)})
		}
	}
}

// somebody is another member.
func (m *member) somebody() ID {
	return m.world.members[(m.index+1+m.world.rand.IntN(len(m.world.members)-1))%len(m.world.members)].self
}

func neverHolds(_ *member, w *wire.Sum) bool {
	if w.Stage == uint8(Holding) {
		w.Stage, w.Rank = uint8(Placed), max(w.Rank, 1)-1
	}
	return true
}

func older(_ *member, w *wire.Sum) bool {
	w.Rank, w.Size, w.Next = 0, 0, ""
	return true
}

func mute(m *member, o Outcome) {
	if o.Share == nil {
		m.world.carry(m, o)
	}
}

// trickles has each share come just in time.
func trickles(m *member, o Outcome) {
	if o.Share == nil {
		m.world.carry(m, o)
		return
	}
	payload := o.Share.Append(nil)
	m.wait = max(m.wait, m.world.now) + standstill - time.Second
	m.world.after(m.wait-m.world.now, func() {
		var s wire.Share
		if s.Decode(payload) == nil && !m.dead {
			m.world.carry(m, Outcome{To: o.To, Share: &s})
		}
	})
}

var lies = map[string]lie{
	"never says that it holds the sum": says(wire.SumStatus, neverHolds),
	"forwards nothing":                 mute,
	"forwards just in time":            trickles,
	"keeps the last step": func(m *member, o Outcome) {
		var a *attempt // the share's, if that is not over
		if s := o.Share; s != nil && m.open[s.Name] != nil && m.open[s.Name].own != nil {
			a = m.open[s.Name].own.current
		}
		if a == nil || a.Op == Gather && int(o.Share.Step) < a.size-2 || a.Op != Gather && int(o.Share.Step)+1 < len(a.hands) {
			m.world.carry(m, o)
		}
	},
	"claims to come near": says(wire.SumStatus, func(m *member, w *wire.Sum) bool {
		w.Stage, w.Rank = min(w.Stage, uint8(Placed)), uint32(m.world.now/(30*time.Second))
		return true
	}),
	"keeps its place": says(wire.SumStatus, func(_ *member, w *wire.Sum) bool {
		w.Stage = max(w.Stage, uint8(Placed))
		return true
	}),
	"takes no place":           says(wire.SumStatus, func(_ *member, w *wire.Sum) bool { w.Stage, w.Attempt, w.Rank = 0, 0, 0; return true }),
	"says nothing of itself":   drops(wire.SumStatus),
	"answers nobody":           drops(wire.SumNone, wire.SumLeader),
	"coordinates without end":  drops(wire.SumCommit, wire.SumFault),
	"coordinates no beginning": drops(wire.SumPlace),
	"voids all":                drops(wire.SumVoid),
	"is of a release before":   says(wire.SumStatus, older),
	"is of a release before, and never holds": says(wire.SumStatus, func(m *member, w *wire.Sum) bool {
		return neverHolds(m, w) && older(m, w)
	}),
	"has had the last attempt": says(wire.SumStatus, func(_ *member, w *wire.Sum) bool {
		if w.Attempt == 0 {
			w.Attempt = maxAttempt - 1
		}
		return true
	}),
	"accuses one": adds(func(m *member, w *wire.Sum) *wire.Sum {
		first := m.world.members[(m.index+1)%2].self
		return &wire.Sum{Kind: wire.SumBroken, Name: w.Name, Attempt: w.Attempt, Next: string(first)}
	}),
	"accuses others": adds(func(m *member, w *wire.Sum) *wire.Sum {
		return &wire.Sum{Kind: wire.SumBroken, Name: w.Name, Attempt: w.Attempt, Next: string(m.somebody())}
	}),
	"says that nothing comes": adds(func(_ *member, w *wire.Sum) *wire.Sum {
		return &wire.Sum{Kind: wire.SumBroken, Name: w.Name, Attempt: w.Attempt}
	}),
	"says that one brings too much": adds(func(m *member, w *wire.Sum) *wire.Sum {
		n := uint32(len(m.world.members))
		return &wire.Sum{Kind: wire.SumBroken, Name: w.Name, Attempt: w.Attempt, Size: n, Rank: uint32(m.world.rand.IntN(int(n)))}
	}),
	"comes and goes": adds(func(_ *member, w *wire.Sum) *wire.Sum { return &wire.Sum{Kind: wire.SumLeft, Name: w.Name} }),
	"has others follow another": adds(func(m *member, w *wire.Sum) *wire.Sum {
		return &wire.Sum{Kind: wire.SumLeader, Name: w.Name, Next: string(m.somebody())}
	}),
	"has used what nobody has": says(wire.SumStatus, func(_ *member, w *wire.Sum) bool {
		if w.Question > 0 {
			w.Kind, w.Rank = wire.SumDone, 0
		}
		return true
	}),
	"waits for ever": says(wire.SumStatus, func(_ *member, w *wire.Sum) bool { w.Timeout = math.MaxUint32; return true }),
	"needs many":     says(wire.SumStatus, func(_ *member, w *wire.Sum) bool { w.Least, w.Timeout = 1000, math.MaxUint32; return true }),
	"sends shares before their place": func(m *member, o Outcome) {
		if w := o.Message; w != nil && w.Kind == wire.SumStatus {
			early := wire.Share{Name: w.Name, Attempt: (w.Attempt>>attemptBits+2)<<attemptBits - 1, Total: 1 << 20}
			for _, other := range m.world.members {
				if other != m {
					m.world.carry(m, Outcome{To: other.self, Share: &early})
				}
			}
		}
		m.world.carry(m, o)
	},
	"brings ever more": says(wire.SumStatus, func(m *member, w *wire.Sum) bool {
		if Op(w.Op) == Gather && w.Stage > 0 {
			w.Stage, w.Rank, w.Size = uint8(Placed), uint32(m.world.now/(30*time.Second)), math.MaxUint32
		}
		return true
	}),
	"says from the first that it brings much": says(wire.SumStatus, func(m *member, w *wire.Sum) bool {
		if Op(w.Op) == Gather {
			w.Stage, w.Rank, w.Size = min(w.Stage, uint8(Placed)), uint32(m.world.now/(30*time.Second)), MaxGathered-1<<20
		}
		return true
	}),
	"has no part, as only the coordinator hears": says(wire.SumStatus, func(_ *member, w *wire.Sum) bool {
		w.Kind, w.Rank = wire.SumNone, 0
		return w.Question > 0
	}),
	"brings NaN": func(m *member, o Outcome) {
		if s := o.Share; s != nil && len(s.Values) > 0 {
			spoilt := *s
			spoilt.Values = slices.Repeat([]float64{math.NaN()}, len(s.Values))
			o.Share = &spoilt
		}
		m.world.carry(m, o)
	},
}

// kinds are the lies in an order: a map has none.
func kinds() (all []string) {
	for what := range lies {
		all = append(all, what)
	}
	slices.Sort(all)
	return all
}

// lied counts what honest ones get of sums beside liars.
type lied struct {
	liars, calls, made int
	longest            time.Duration
	share              float64 // of what is promised, at most
}

// liesAt runs the world of a seed in which one lies, or two of five and more, and others may die, and
// returns how many did. All honest ones have one result or an error of each sum, in time.
func liesAt(t *testing.T, seed uint64, count *lied, masked bool) (killed int) {
	n := 3 + int(seed%4)
	w := newWorld(t, seed, n).hides(masked).over(seed / 4)
	all, what := kinds(), ""
	for _, i := range w.rand.Perm(n)[:1+n/5*w.rand.IntN(2)] {
		lie := all[w.rand.IntN(len(all))]
		w.members[i].lie, what = lies[lie], fmt.Sprintf("%s %s of %d %s", what, w.members[i].self, n, lie)
		count.liars++
	}
	for _, m := range w.members {
		for i := range 5 {
			m.calls = append(m.calls, m.hidden(callOf(m, i, 100)))
		}
		w.after(w.upTo(20*time.Millisecond), m.next)
		if w.rand.IntN(4) == 0 {
			m.dies = 1 + w.rand.IntN(100)
		}
	}
	w.run(24 * time.Hour)
	for _, m := range w.members {
		if m.dead {
			killed++
		}
	}
	count.made += w.agree(t, fmt.Sprintf("seed %d: %s", seed, what), 5)
	for _, m := range w.members {
		if !m.dead && m.lie == nil {
			count.calls += len(m.results)
			count.longest = max(count.longest, m.longest)
			count.share = max(count.share, float64(m.longest)/float64(w.promised()))
		}
	}
	return killed
}

// promised is for how long a call of callOf may last.
func (w *world) promised() time.Duration {
	p := part{Call: Call{Vector: make([]float64, 100)}, m: &Machine{membership: membership{members: make([]ID, len(w.members))}}}
	add := p.limit()
	p.Op = movedOf(len(w.members))
	return max(add, p.limit()) + 2*time.Second
}

// agree tells that all honest ones have one result or an error of each sum, within what is promised.
func (w *world) agree(t *testing.T, what string, sums int) (made int) {
	t.Helper()
	first := make(map[string]Result)
	for _, m := range w.members {
		if m.dead || m.lie != nil {
			continue
		}
		if len(m.results) != sums || m.longest > w.promised() {
			t.Errorf("%s: %s has %d results, the slowest after %s", what, m.self, len(m.results), m.longest)
		}
		for _, r := range m.results {
			if r.Err != nil {
				continue
			}
			made++
			if f, ok := first[r.Name]; !ok {
				first[r.Name] = r
			} else if !slices.Equal(f.Vector, r.Vector) || !slices.EqualFunc(f.Blocks, r.Blocks, bytes.Equal) {
				t.Errorf("%s: %q has two results", what, r.Name)
			}
		}
	}
	return made
}

// flockWith is some members that make four sums, of which one lies.
func flockWith(t *testing.T, seed uint64, n, liar int, what string) *world {
	w := newWorld(t, seed, n)
	w.members[liar].lie = lies[what]
	for _, m := range w.members {
		for i := range 4 {
			m.calls = append(m.calls, callOf(m, i, 100))
		}
		w.after(w.upTo(20*time.Millisecond), m.next)
	}
	return w
}

// TestOneThatLiesIsOutlived shows that a member that holds up a sum of four or more stands still three
// times, and then the others make it without it, nobody else thrown out, and those after it at once.
func TestOneThatLiesIsOutlived(t *testing.T) {
	for _, what := range kinds() {
		switch what {
		case "brings NaN", "needs many", "says nothing of itself", "has no part, as only the coordinator hears": // all have an error, or it has
			continue
		}
		for seed := range uint64(10) {
			n := 4 + int(seed%3)
			w := flockWith(t, seed, n, 1+int(seed)%(n-1), what)
			w.run(time.Hour)
			all := fmt.Sprintf("seed %d: %s", seed, what)
			if made := w.agree(t, all, 4); made != 4*(n-1) {
				t.Errorf("%s: %d results of %d", all, made, 4*(n-1))
			}
			if w.now > maxStalls*(lasts(Add, moves(100), n)+2*slack+time.Second) {
				t.Errorf("%s: four sums took %s", all, w.now)
			}
		}
	}
}

// TestOneThatLiesIsNamed shows that of three, where two that are left would hear each other's numbers,
// both are told whom the sum waited for, with an error and before.
func TestOneThatLiesIsNamed(t *testing.T) {
	for _, what := range []string{"never says that it holds the sum", "forwards nothing", "forwards just in time"} {
		w := flockWith(t, 1, 3, 2, what)
		w.run(time.Hour)
		w.agree(t, what, 4)
		for _, m := range w.members[:2] {
			if err := m.results[0].Err; !errors.Is(err, ErrTooFew) || !strings.Contains(err.Error(), "m02") {
				t.Errorf("%s: %v", what, err)
			}
		}
		told := make(map[string]bool)
		for _, f := range w.members[0].Facts() {
			told[f.What] = told[f.What] || slices.Contains(f.Who, "m02") || strings.Contains(f.Why, "m02")
		}
		if !told[Waits] || !told[Voided] || !told[Thrown] {
			t.Errorf("%s: it is told %v", what, told)
		}
	}
}

// TestNobodyIsThrownOutForAThird shows that one that takes no place beside another alone, since a third
// does not tell it that it has no part, is not at fault: both hear whom the sum waited for.
func TestNobodyIsThrownOutForAThird(t *testing.T) {
	const what = "has no part, as only the coordinator hears"
	for seed := range uint64(10) {
		w := flockWith(t, seed, 3, 1+int(seed%2), what)
		w.run(time.Hour)
		w.agree(t, what, 4)
		for _, m := range w.members {
			if m.lie != nil {
				continue // and makes no other sum
			}
			if r := m.results[0]; !errors.Is(r.Err, ErrTooFew) || !strings.Contains(r.Err.Error(), string(name(1+int(seed%2)))) {
				t.Errorf("seed %d: %s: %v of %d", seed, m.self, r.Err, r.Peers)
			}
		}
	}
}

// TestAFullChunkJustInTimeIsTooSlow shows that an attempt has to move so many bytes a second on the whole.
func TestAFullChunkJustInTimeIsTooSlow(t *testing.T) {
	w := newWorld(t, 1, 4)
	w.members[3].lie = trickles
	for _, m := range w.members {
		m.calls = []Call{callOf(m, 0, 300_000)}
		w.after(0, m.next)
	}
	w.run(24 * time.Hour)
	bound := maxStalls * (lasts(Add, moves(300_000), 4) + 2*slack)
	if made := w.agree(t, "trickles", 1); made != 3 || w.now > bound {
		t.Errorf("%d results after %s, want 3 within %s", made, w.now, bound)
	}
}

// TestABlockJustInTimeIsTooSlow shows the same of a gathering, where the block that one brings is large.
func TestABlockJustInTimeIsTooSlow(t *testing.T) {
	w := newWorld(t, 1, 4)
	w.members[1].lie = trickles
	for _, m := range w.members {
		m.calls = []Call{{Name: "x", Op: Gather, Timeout: 10 * time.Second}}
		w.after(0, m.next)
	}
	w.members[0].calls[0].Data = make([]byte, 8<<20)
	w.run(24 * time.Hour)
	if made := w.agree(t, "trickles", 1); made != 3 || w.now > maxStalls*(lasts(Gather, 8<<20, 4)+2*slack) {
		t.Errorf("%d results after %s, want 3", made, w.now)
	}
}

// TestTwoThatWaitForEver shows that the patience of two does not hold up the others, the coordinator among
// them, where one of the members does not call.
func TestTwoThatWaitForEver(t *testing.T) {
	w := newWorld(t, 1, 6)
	for _, m := range w.members[:5] {
		m.calls = []Call{callOf(m, 0, 100)}
		if m.index > 2 {
			m.calls[0].Timeout = math.MaxUint32 * time.Millisecond
		}
		w.after(0, m.next)
	}
	w.run(24 * time.Hour)
	for _, m := range w.members[:5] {
		if len(m.results) != 1 || m.results[0].Peers != 5 || m.longest > longestWait+time.Minute {
			t.Errorf("%s: %+v after %s", m.self, m.results, m.longest)
		}
	}
}
