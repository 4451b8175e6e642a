package sums

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// TestPlacesThatNobodyGives shows that a place among too many, or beside who is no member, is
// passed over: it would cost memory, or streams.
func TestPlacesThatNobodyGives(t *testing.T) {
	for _, place := range []wire.Sum{
		{Attempt: 7, Size: 1 << 16, Partners: slices.Repeat([]string{"a"}, len(partners(schedule(Gather, 0, 1<<16, 0))))},
		{Attempt: 7, Size: math.MaxUint32, Rank: math.MaxUint32 - 1, Partners: slices.Repeat([]string{"a"}, wire.MaxSumPartners)},
		{Attempt: 7, Size: 2, Partners: []string{"nobody"}},
		{Attempt: 7, Size: 2},
		{Attempt: 7, Partners: []string{"a"}},
		{Attempt: maxAttempt, Size: 2, Partners: []string{"a"}}, // no coordinator after it would hear of the next
	} {
		s := newSolo(t, "a")
		s.Call(0, Call{Name: "x", Op: Gather})
		s.hears("a", wire.SumPlace, place)
		if p := s.open["x"].own; p.stage != Waiting || p.current != nil {
			t.Errorf("%+v is taken", place)
		}
	}
}

// TestSharesBeforeTheirPlaceAreBounded shows that those without a byte are, too.
func TestSharesBeforeTheirPlaceAreBounded(t *testing.T) {
	s := newSolo(t, "a")
	s.Call(0, Call{Name: "x", Vector: make([]float64, 10)})
	for range 1000 {
		s.Share(0, "a", wire.Share{Name: "x", Attempt: 7})
	}
	if n := len(s.open["x"].own.early["a"].shares); n > 10 {
		t.Errorf("%d are kept", n)
	}
}

// TestATrickleIsAStandstill shows that a few bytes now and then do not keep an attempt going.
func TestATrickleIsAStandstill(t *testing.T) {
	s := leads(t, "o")
	s.hears("o", wire.SumStatus, wire.Sum{Length: 1})
	s.hears("o", wire.SumNone, wire.Sum{Question: 1})
	for i := range uint32(5) {
		w := wire.Sum{Attempt: s.open["x"].lead.attempt, Stage: uint8(Placed), Rank: i, Length: 1}
		s.hears("o", wire.SumStatus, w)
		if s.open["x"].lead.voided > 0 {
			break
		}
		s.passes(standstill/4, w)
	}
	if s.open["x"].lead.voided == 0 {
		t.Error("it waits on")
	}
}

// leads is member m, to which n has come for a sum, and which made a sum of n and o before.
func leads(t *testing.T, others ...ID) *solo {
	s := newSolo(t)
	s.leader, s.group = s.self, []ID{"n", "o"}
	s.View(0, append([]ID{s.self, "n"}, others...))
	s.hears("n", wire.SumStatus, wire.Sum{Length: 1, Timeout: 10_000})
	return s
}

// passes lets time pass, in which n says each second where it is.
func (s *solo) passes(d time.Duration, w wire.Sum) {
	for end := s.now + d; s.now < end; {
		s.now += time.Second
		w.Length, w.Timeout = 1, 10_000
		s.hears("n", wire.SumStatus, w)
		s.Tick(s.now)
	}
}

// TestWhoNeverAnswersFailsASum shows that a member that is here, and does not say whether it has
// used a sum, does not hold the others up for good.
func TestWhoNeverAnswersFailsASum(t *testing.T) {
	s := leads(t, "o")
	s.passes(10*time.Second+unanswered, wire.Sum{})
	if w := s.told("n", wire.SumFault); w == nil || w.Op != codeOf(ErrTooFew) {
		t.Errorf("n is told %+v", w)
	}
}

// TestComingAndGoingWinsNoTime shows that a member that comes again and again does not have the
// others wait for ever.
func TestComingAndGoingWinsNoTime(t *testing.T) {
	s := leads(t, "o", "p")
	s.group = append(s.group, "p")
	s.hears("p", wire.SumNone, wire.Sum{Question: 1})
	for range 12 {
		s.passes(time.Second, wire.Sum{})
		s.hears("o", wire.SumStatus, wire.Sum{Length: 1})
		s.hears("o", wire.SumLeft, wire.Sum{})
	}
	s.hears("o", wire.SumNone, wire.Sum{Question: 1})
	s.Tick(s.now)
	if w := s.told("n", wire.SumPlace); w == nil {
		t.Error("n still has no place")
	}
}

// TestAttemptsAreBounded shows that a member that breaks one after the other off is left out of the sum
// soon, whatever it does then.
func TestAttemptsAreBounded(t *testing.T) {
	s := leads(t, "o")
	for range 100 {
		s.hears("o", wire.SumStatus, wire.Sum{Length: 1})
		if l := s.open["x"]; l == nil || l.lead == nil {
			break
		}
		s.hears("o", wire.SumBroken, wire.Sum{Attempt: s.open["x"].lead.attempt, Next: "nobody"})
		s.hears("n", wire.SumStatus, wire.Sum{Length: 1})
		s.hears("o", wire.SumStatus, wire.Sum{Length: 1})
	}
	if w := s.told("n", wire.SumPlace); w == nil || w.Size != 1 || s.open["x"].lead.voided != maxBroken {
		t.Errorf("n is told %+v", w)
	}
	if s.hears("o", wire.SumStatus, wire.Sum{Length: 1}); s.told("o", wire.SumFault) == nil {
		t.Error("o may come again")
	}
}

// TestAttemptsDoNotOverflow shows that a participant that says to have been in the last of all
// attempts is not heard: there would be none after it.
func TestAttemptsDoNotOverflow(t *testing.T) {
	s := leads(t, "o")
	s.hears("o", wire.SumStatus, wire.Sum{Length: 1, Attempt: math.MaxUint64})
	if l := s.open["x"].lead; len(l.came) != 1 || l.others != 0 {
		t.Errorf("%+v", l)
	}
}

// TestOneMemberDoesNotFillTheTable shows that names that one member makes up leave room for others.
func TestOneMemberDoesNotFillTheTable(t *testing.T) {
	s := leads(t, "o")
	for i := range 2 * MaxOpen {
		s.Receive(0, "o", wire.Sum{Kind: wire.SumStatus, Name: fmt.Sprint(i), Timeout: math.MaxUint32})
	}
	if n := len(s.open); n != maxAlone+1 {
		t.Errorf("%d sums are under way", n)
	}
}

// TestWhoPassesOnTooMuchIsFound shows that a member that makes others' blocks longer is thrown out, and none of those.
func TestWhoPassesOnTooMuchIsFound(t *testing.T) {
	for seed := range uint64(3) {
		w := newWorld(t, seed, 40)
		w.members[5].lie = func(m *member, o Outcome) {
			if s := o.Share; s != nil && s.Step&(s.Step+1) != 0 { // none of its own
				longer := *s
				longer.Total = MaxGather
				o.Share = &longer
			}
			m.world.carry(m, o)
		}
		for _, m := range w.members {
			m.calls = append(m.calls, Call{Name: "x", Op: Gather, Data: []byte(m.self), Timeout: time.Minute})
			w.after(w.upTo(20*time.Millisecond), m.next)
		}
		w.run(time.Hour)
		if made := w.agree(t, fmt.Sprintf("seed %d", seed), 1); made != 39 {
			t.Errorf("seed %d: %d results of 39", seed, made)
		}
	}
}
