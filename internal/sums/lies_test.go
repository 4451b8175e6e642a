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
		if o.Word != nil && o.Word.Kind == kind {
			w := *o.Word
			if o.Word = &w; !change(m, &w) {
				return
			}
		}
		m.world.carry(m, o)
	}
}

func drops(kinds ...wire.SumKind) lie {
	return func(m *member, o Outcome) {
		if o.Word == nil || !slices.Contains(kinds, o.Word.Kind) {
			m.world.carry(m, o)
		}
	}
}

// adds says more beside each STATUS.
func adds(more func(m *member, w *wire.Sum) *wire.Sum) lie {
	return func(m *member, o Outcome) {
		m.world.carry(m, o)
		if o.Word != nil && o.Word.Kind == wire.SumStatus && m.world.rand.IntN(4) == 0 {
			m.world.carry(m, Outcome{To: o.To, Word: more(m, o.Word)})
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
		if s := o.Share; s == nil || int(s.Step)+1 < m.open[s.Name].own.ring.steps() {
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
			w.Kind = wire.SumDone
		}
		return true
	}),
	"waits for ever": says(wire.SumStatus, func(_ *member, w *wire.Sum) bool { w.Patience = math.MaxUint32; return true }),
	"needs many":     says(wire.SumStatus, func(_ *member, w *wire.Sum) bool { w.Least, w.Patience = 1000, math.MaxUint32; return true }),
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
func liesAt(t *testing.T, seed uint64, count *lied) (killed int) {
	n := 3 + int(seed%4)
	w := newWorld(t, seed, n)
	all, what := kinds(), ""
	for _, i := range w.rand.Perm(n)[:1+n/5*w.rand.IntN(2)] {
		lie := all[w.rand.IntN(len(all))]
		w.members[i].lie, what = lies[lie], fmt.Sprintf("%s %s of %d %s", what, w.members[i].self, n, lie)
		count.liars++
	}
	for _, m := range w.members {
		for i := range 4 {
			m.calls = append(m.calls, callOf(m, i, 100))
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
	count.made += w.agree(t, fmt.Sprintf("seed %d: %s", seed, what), 4)
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
	p := part{Call: Call{Vector: make([]float64, 100)}, m: &Machine{members: make([]ID, len(w.members))}}
	return p.limit() + 2*time.Second
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
		case "brings NaN", "needs many", "says nothing of itself": // all have an error
			continue
		}
		for seed := range uint64(20) {
			n := 4 + int(seed%3)
			w := flockWith(t, seed, n, 1+int(seed)%(n-1), what)
			w.run(time.Hour)
			all := fmt.Sprintf("seed %d: %s", seed, what)
			if made := w.agree(t, all, 4); made != 4*(n-1) {
				t.Errorf("%s: %d results of %d", all, made, 4*(n-1))
			}
			if w.now > maxStalls*(standstill+2*slack+time.Second) {
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

// TestAFullChunkJustInTimeIsTooSlow shows that an attempt has to move so many bytes a second on the whole.
func TestAFullChunkJustInTimeIsTooSlow(t *testing.T) {
	w := newWorld(t, 1, 4)
	w.members[3].lie = trickles
	for _, m := range w.members {
		m.calls = []Call{callOf(m, 0, 300_000)}
		w.after(0, m.next)
	}
	w.run(24 * time.Hour)
	bound := maxStalls * (lasts(moves(300_000)) + 2*slack)
	if made := w.agree(t, "trickles", 1); made != 3 || w.now > bound {
		t.Errorf("%d results after %s, want 3 within %s", made, w.now, bound)
	}
}

// TestASumThatIsNotFinite shows that all have one error of a sum of which a number is not finite, whether
// one brings it or finite numbers overflow, and hear who did, where a neighbour knows.
func TestASumThatIsNotFinite(t *testing.T) {
	for _, c := range []struct {
		op    Op
		bring [3]float64
		names bool
	}{
		{Add, [3]float64{1, math.NaN(), 1}, true},
		{Add, [3]float64{1, math.Inf(-1), 1}, true},
		{Add, [3]float64{math.Inf(1), math.Inf(-1), 1}, false},
		{Add, [3]float64{1e308, 1e308, 1e308}, false},
		{Max, [3]float64{1, math.NaN(), 1}, true},
		{Max, [3]float64{1, math.Inf(1), 1}, true},
	} {
		w := newWorld(t, 1, 3)
		for _, m := range w.members {
			m.calls = []Call{{Name: "x", Op: c.op, Vector: slices.Repeat([]float64{c.bring[m.index]}, 9)}}
			w.after(0, m.next)
		}
		w.run(time.Minute)
		for _, m := range w.members {
			err := m.results[0].Err
			if !errors.Is(err, ErrNotFinite) || m.results[0].Vector != nil || c.names && !strings.HasSuffix(err.Error(), "m01 brought such a number") {
				t.Errorf("%s of %v: %v", c.op, c.bring, err)
			}
		}
	}
}

// TestAGatheringHasABound shows that nobody makes room for more than MaxGathered, and that it is said who
// brought most, by those that say beforehand what they bring, or by one that hears more than that.
func TestAGatheringHasABound(t *testing.T) {
	s := leads(t, "o")
	s.hears("o", wire.SumStatus, wire.Sum{Op: uint8(Gather)})
	s = newSolo(t)
	s.leader, s.group = s.self, []ID{"n", "o"}
	s.View(0, []ID{s.self, "n", "o"})
	s.hears("n", wire.SumStatus, wire.Sum{Op: uint8(Gather), Size: wire.SumTells + MaxGathered/2})
	s.hears("o", wire.SumStatus, wire.Sum{Op: uint8(Gather), Size: wire.SumTells + MaxGathered/2 + 1})
	if w := s.told("n", wire.SumFault); w == nil || w.Op != codeOf(ErrMismatch) || !strings.HasSuffix(w.Detail, "of them o") {
		t.Errorf("n is told %+v", w)
	}

	ids := make([]ID, 10)
	for i := range ids {
		ids[i] = name(i)
	}
	s = newSolo(t, ids...)
	s.Call(0, Call{Name: "x", Op: Gather})
	s.hears(ids[0], wire.SumPlace, wire.Sum{Attempt: 7, Size: 11, Rank: 10, Next: string(ids[0]), Previous: string(ids[9])})
	r := s.open["x"].own.ring
	for step := range 8 {
		r.step, r.gathered = step, uint64(step)*MaxGather // as if so many had come
	}
	r.step, r.gathered, r.blocks[3] = 8, 8*MaxGather, make([]byte, MaxGather)
	s.Share(0, ids[9], wire.Share{Name: "x", Attempt: 7, Step: 8, Total: 1, Data: []byte{1}})
	if w := s.told(ids[0], wire.SumBroken); w == nil || w.Rank != 3 || w.Size != 11 {
		t.Errorf("its coordinator is told %+v", w)
	}
}

// TestAPairWhileOthersAreHere shows that a member does not sum with one alone at the word of another, whose
// numbers that would hear, before its own patience has passed and all others have said that they have no part.
func TestAPairWhileOthersAreHere(t *testing.T) {
	s := newSolo(t, "a", "b", "c")
	s.Call(0, Call{Name: "x", Vector: []float64{1, 2}, Patience: 10 * time.Second})
	offer := wire.Sum{Attempt: 7, Size: 2, Next: "a", Previous: "a"}
	placed := func() bool { s.hears("a", wire.SumPlace, offer); return s.open["x"].own.ring != nil }
	if s.hears("b", wire.SumNone, wire.Sum{}); placed() {
		t.Fatal("it sums with a alone at once")
	}
	s.now += 10 * time.Second
	s.Outcomes()
	if placed() {
		t.Fatal("it sums with a alone, and has asked nobody")
	}
	asked := s.told("c", wire.SumAsk)
	if asked == nil || asked.Stage != 1 {
		t.Fatalf("c is told %+v", asked)
	}
	if !slices.ContainsFunc(s.Facts(), func(f Fact) bool { return f.What == Apart }) {
		t.Error("nobody is told of it")
	}
	c := newSolo(t, "a", "b") // as c is
	c.hears("m", wire.SumAsk, *asked)
	if c.told("m", wire.SumNone) != nil {
		t.Error("who is no member is answered")
	}
	c.here("a", "b", "n")
	c.Call(0, Call{Name: "x", Vector: []float64{1, 2}})
	c.Outcomes()
	if c.hears("n", wire.SumAsk, *asked); c.told("n", wire.SumNone) != nil {
		t.Error("one that has a part says that it has none")
	}
	c.Cancel(0, "x")
	c.Outcomes()
	if c.hears("n", wire.SumAsk, *asked); c.told("n", wire.SumNone) == nil {
		t.Error("one that has no part does not say so")
	}
	s.hears("b", wire.SumNone, wire.Sum{})
	if s.hears("c", wire.SumNone, wire.Sum{}); !placed() {
		t.Error("nobody else sums, and it does not either")
	}
}
