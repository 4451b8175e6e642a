package sums

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
)

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
	s := newSolo(t)
	s.leader, s.group = s.self, []ID{"n", "o"}
	s.View(0, []ID{s.self, "n", "o"})
	s.hears("n", wire.SumStatus, wire.Sum{Op: uint8(Gather), Size: MaxGathered / 2})
	s.hears("o", wire.SumStatus, wire.Sum{Op: uint8(Gather), Size: MaxGathered/2 + 1})
	if w := s.told("n", wire.SumFault); w == nil || w.Op != codeOf(ErrMismatch) || !strings.HasSuffix(w.Detail, "of them o") {
		t.Errorf("n is told %+v", w)
	}

	ids := make([]ID, 10)
	for i := range ids {
		ids[i] = name(i)
	}
	s = newSolo(t, ids...)
	s.Call(0, Call{Name: "x", Op: Gather})
	s.hears(ids[0], wire.SumPlace, wire.Sum{Attempt: 7, Size: 11, Rank: 10, Partners: named(ids, partners(schedule(Gather, 10, 11, 0))...)})
	a := s.open["x"].own.current
	for rank := range 8 { // they have come
		a.blocks.totals[rank] = MaxGather - 1
	}
	a.blocks.totals[3] = MaxGather
	s.Share(0, ids[7], wire.Share{Name: "x", Attempt: 7, Step: 8, Total: 8, Data: []byte{1}})
	if w := s.told(ids[0], wire.SumBroken); w == nil || w.Rank != 3 || w.Size != 11 {
		t.Errorf("its coordinator is told %+v", w)
	}
}

// TestAPairWhileOthersAreHere shows that a member does not sum with one alone at the word of another, whose
// numbers that would hear, before its own patience has passed and all others have said that they have no part.
func TestAPairWhileOthersAreHere(t *testing.T) {
	s := newSolo(t, "a", "b", "c")
	s.Call(0, Call{Name: "x", Vector: []float64{1, 2}, Timeout: 10 * time.Second})
	offer := wire.Sum{Attempt: 7, Size: 2, Partners: []string{"a"}}
	placed := func() bool { s.hears("a", wire.SumPlace, offer); return s.open["x"].own.current != nil }
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
	if placed() || s.told("c", wire.SumAsk) != nil {
		t.Error("whoever says the place again and again has it ask as often")
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

// named are the members of some ranks.
func named(ids []ID, ranks ...int) (partners []string) {
	for _, rank := range ranks {
		partners = append(partners, string(ids[rank]))
	}
	return partners
}

// TestNobodyStandsTwice shows that a place is none in which one member stands as two partners, or as this
// one, or that has more or fewer partners than it has to: one would hear more of its numbers.
func TestNobodyStandsTwice(t *testing.T) {
	for _, place := range []wire.Sum{
		{Size: 4, Rank: 1, Partners: []string{"a", "a"}}, {Size: 4, Rank: 1, Partners: []string{"b", "a"}}, {Size: 3, Rank: 2, Partners: []string{"a", "a"}},
		{Size: 3, Rank: 1, Partners: []string{"a"}}, {Size: 2, Rank: 1, Partners: []string{"b"}}, {Size: 2, Rank: 1, Partners: []string{"a", "c"}},
		{Size: 2, Rank: 1}, {Size: 1, Partners: []string{"a"}}, {Size: 4, Rank: 1, Partners: []string{"a", "nobody"}}, {Partners: []string{"a"}},
	} {
		m := New("b", Times{})
		m.View(0, []ID{"a", "b", "c", "d"})
		m.Call(0, Call{Name: "x", Vector: []float64{1, 2, 3}, Least: 1})
		m.Receive(0, "c", wire.Sum{Kind: wire.SumNone, Name: "x"})
		m.Receive(0, "d", wire.Sum{Kind: wire.SumNone, Name: "x"})
		m.Outcomes()
		place.Kind, place.Name, place.Attempt = wire.SumPlace, "x", 1<<attemptBits
		m.Receive(0, "a", place)
		for _, o := range m.Outcomes() {
			if o.Share != nil || o.Message != nil && o.Message.Attempt > 0 {
				t.Errorf("takes the place %+v: %+v %+v", place, o.Message, o.Share)
			}
		}
	}
}

// TestWhoHearsWhichHalf shows that in the order that a coordinator gives, where no attempt has failed, who
// comes before one by id hears the first half of its numbers, and who comes after the other: one that follows a coordinator
// that died has nobody hear both.
func TestWhoHearsWhichHalf(t *testing.T) {
	for n := 3; n <= 40; n++ {
		var line []ID
		for i := range n {
			line = append(line, name(i))
		}
		order := (&blame{}).order(Add, line, 1)
		for rank, id := range order {
			hands, _ := schedule(Add, rank, n, 2)
			for _, h := range hands {
				if to := order[h.peer]; h.after == 0 && (to < id) != (h.from == 0) {
					t.Errorf("of %d: %s hears the half from %d of %s", n, to, h.from, id)
				}
			}
		}
	}
}

// TestOneThatIsThrownOutLeavesOthersWhereTheyAre shows that a participant that is thrown out for giving an
// attempt up changes nothing of what is known of another.
func TestOneThatIsThrownOutLeavesOthersWhereTheyAre(t *testing.T) {
	m := New("a", Times{})
	m.View(0, []ID{"a", "b", "c", "d"})
	status := wire.Sum{Kind: wire.SumStatus, Name: "x", Length: 1, Question: 1}
	for _, id := range m.members[1:] {
		m.Receive(0, id, status)
	}
	m.Call(0, Call{Name: "x", Vector: []float64{1}})
	m.Outcomes()
	l := m.open["x"].lead
	status.Attempt, status.Stage = l.attempt, uint8(Placed)
	m.Receive(0, "c", status)
	l.blame.between[[2]ID{"b", ""}] = maxBroken - 1
	status.Stage = uint8(Waiting)
	m.Receive(0, "b", status)
	if c := l.came["c"]; l.came["b"] != nil || c.stage != Placed {
		t.Errorf("those who are left: %+v", l.came)
	}
}

// TestSharesOfALiarPushNoOthersOut shows that what comes before its place waits for it, whatever another
// sends that has none.
func TestSharesOfALiarPushNoOthersOut(t *testing.T) {
	const attempt = 1 << attemptBits
	honest := wire.Share{Name: "x", Attempt: attempt, Total: 16, Data: make([]byte, 16)}
	for what, lie := range map[string]wire.Share{
		"the same attempt": {Name: "x", Attempt: attempt, Total: 8}, "one to come": {Name: "x", Attempt: maxAttempt, Total: 8},
		"all the room": {Name: "x", Attempt: attempt, Total: 1 << 20, Data: make([]byte, 3*wire.NumberSize*3)},
	} {
		m := New("b", Times{})
		m.View(0, []ID{"a", "b", "c", "d"})
		m.Call(0, Call{Name: "x", Vector: []float64{1, 2, 3}})
		m.Share(0, "d", lie)
		m.Share(0, "a", honest)
		m.Share(0, "d", lie)
		m.Receive(0, "a", wire.Sum{Kind: wire.SumPlace, Name: "x", Attempt: attempt, Size: 3, Rank: 1, Partners: []string{"a", "c"}})
		if p := m.open["x"].own; p.current == nil || p.current.taken != 1 {
			t.Errorf("%s: the share of a partner is lost", what)
		}
	}
}

// TestABlockThatIsTooMuchStaysOut shows that what exceeds MaxGathered is not taken when it comes once more.
func TestABlockThatIsTooMuchStaysOut(t *testing.T) {
	const size = 32
	hands, takes := schedule(Gather, 0, size, 0)
	place := &wire.Sum{Attempt: 1, Size: size}
	for _, rank := range partners(hands, takes) {
		place.Partners = append(place.Partners, fmt.Sprint(rank))
	}
	a := newAttempt(&Call{Name: "x", Op: Gather}, place, func(Outcome) {})
	for step := uint32(size/2 - 1); step < size-1; step++ {
		s := wire.Share{Name: "x", Attempt: 1, Step: step, Total: MaxGather, Data: []byte{1}}
		if a.take("16", &s); a.take("16", &s) { // the second is no more of one that was taken
			t.Fatalf("the block of step %d is taken", step)
		}
	}
}
