package sums

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// solo is one machine, and what the test says to it in the name of others.
type solo struct {
	*Machine
	t   *testing.T
	now time.Duration
}

// newSolo is member m among others that come before it, in this order.
func newSolo(t *testing.T, before ...ID) *solo {
	s := &solo{New("m", Times{}), t, 0}
	s.here(before...)
	return s
}

func (s *solo) here(before ...ID) {
	s.View(s.now, append(before, s.self))
}

func (s *solo) hears(from ID, kind wire.SumKind, w wire.Sum) {
	w.Kind, w.Name = kind, "x"
	s.Receive(s.now, from, w)
}

// holds has the member call, and be placed alone by one, so that it holds the sum of attempt 7.
func (s *solo) holds(by ID) {
	s.Call(s.now, Call{Name: "x", Vector: []float64{1}, Timeout: time.Second})
	s.hears(by, wire.SumPlace, wire.Sum{Attempt: 7, Size: 1})
	if s.told(by, wire.SumStatus).Stage != uint8(Holding) {
		s.t.Fatal("it holds nothing")
	}
}

// told is the last word to a member since the last look, nil if there is none or it is another.
func (s *solo) told(to ID, kind wire.SumKind) *wire.Sum {
	s.t.Helper()
	var last *wire.Sum
	for _, o := range s.Outcomes() {
		if o.Result != nil {
			s.t.Fatalf("it has a result: %+v", *o.Result)
		}
		if o.To == to && o.Message != nil {
			last = o.Message
		}
	}
	if last != nil && last.Kind != kind {
		return nil
	}
	return last
}

func (s *solo) done() bool {
	return slices.ContainsFunc(s.Outcomes(), func(o Outcome) bool { return o.Result != nil && o.Result.Err == nil })
}

// TestACommitOfAnEarlierTermIsVoid shows that a member that has told another where it is takes
// no word any more that was on its way, even of one that it follows again.
func TestACommitOfAnEarlierTermIsVoid(t *testing.T) {
	s := newSolo(t, "a", "b")
	s.holds("a")
	s.here("b") // a seems dead
	if w := s.told("b", wire.SumStatus); w == nil || w.Term != 2 {
		t.Fatalf("b is told %+v", w)
	}
	s.here("a", "b")
	s.here("a")
	s.hears("a", wire.SumCommit, wire.Sum{Attempt: 7, Term: 1})
	if w := s.told("a", wire.SumStatus); w == nil || w.Term != 3 {
		t.Fatalf("a is told %+v", w)
	}
	s.hears("a", wire.SumAsk, wire.Sum{}) // perhaps another than before
	s.hears("a", wire.SumCommit, wire.Sum{Attempt: 7, Term: 3})
	if w := s.told("a", wire.SumStatus); w == nil || w.Term != 4 {
		t.Fatalf("a is answered %+v", w)
	}
	if s.hears("a", wire.SumCommit, wire.Sum{Attempt: 7, Term: 4}); !s.done() {
		t.Error("the last term has no result")
	}
}

// TestAPlaceBinds shows that a member tells nobody else where it is while the one that gave it a
// place is here and coordinates.
func TestAPlaceBinds(t *testing.T) {
	for _, gives := range []bool{false, true} {
		s := newSolo(t, "b")
		s.holds("b")
		s.here("a", "b")
		s.hears("a", wire.SumAsk, wire.Sum{})
		s.now += 2 * time.Second
		s.Tick(s.now)
		if w := s.told("a", wire.SumStatus); w != nil {
			t.Fatalf("a is told %+v", w)
		}
		if gives {
			s.hears("b", wire.SumLeader, wire.Sum{Next: "a"})
			if w := s.told("a", wire.SumStatus); w == nil || w.Stage != uint8(Holding) {
				t.Fatalf("a is told %+v", w)
			}
		}
		if s.hears("b", wire.SumCommit, wire.Sum{Attempt: 7, Term: 1}); s.done() == gives {
			t.Errorf("b coordinates no more: %t, and its word counts: %t", gives, !gives)
		}
	}
}

// TestOnlyWhomItFollowsIsAnswered shows that a member that waits for one tells another nothing.
func TestOnlyWhomItFollowsIsAnswered(t *testing.T) {
	s := newSolo(t, "a", "b")
	s.Call(0, Call{Name: "x", Vector: []float64{1}})
	s.hears("b", wire.SumAsk, wire.Sum{})
	if w := s.told("b", wire.SumStatus); w != nil {
		t.Errorf("it follows a, and tells b %+v", w)
	}
}

// TestACoordinatorAsksWhoHasNotCome shows that even the one that made the last sum gives out no
// place before all members have said that they have not used it: one may have led meanwhile.
func TestACoordinatorAsksWhoHasNotCome(t *testing.T) {
	for _, used := range []bool{false, true} {
		s := newSolo(t)
		s.leader, s.group = s.self, []ID{"n"}
		s.View(0, []ID{s.self, "n", "o"})
		s.hears("n", wire.SumStatus, wire.Sum{Length: 1})
		asked := s.told("o", wire.SumAsk)
		if asked == nil {
			t.Fatal("o is not asked")
		}
		s.hears("o", wire.SumDone, wire.Sum{Attempt: 6}) // to an earlier question
		s.hears("o", wire.SumNone, wire.Sum{})
		if w := s.told("n", wire.SumPlace); w != nil {
			t.Fatalf("n is told %+v", w)
		}
		if !used {
			s.hears("o", wire.SumNone, wire.Sum{Question: asked.Question})
			if w := s.told("n", wire.SumPlace); w == nil || w.Size != 1 {
				t.Errorf("n has no place: %+v", w)
			}
			continue
		}
		s.hears("o", wire.SumDone, wire.Sum{Attempt: 7, Question: asked.Question})
		if w := s.told("n", wire.SumFault); w == nil || w.Op != codeOf(ErrOver) {
			t.Errorf("n is told %+v", w)
		}
	}
}

// TestOnlyAnswersCount shows that one that did not make the last sum asks even those who have
// told it where they are: it may have been long ago, and another may have led meanwhile.
func TestOnlyAnswersCount(t *testing.T) {
	s := newSolo(t)
	s.View(0, []ID{s.self, "n"})
	s.hears("n", wire.SumStatus, wire.Sum{Length: 1})
	s.now += 2 * time.Second
	s.Tick(s.now)
	asked := s.told("n", wire.SumAsk)
	if asked == nil {
		t.Fatal("n is not asked")
	}
	s.hears("n", wire.SumStatus, wire.Sum{Length: 1, Question: asked.Question})
	s.Tick(s.now)
	if s.told("n", wire.SumPlace) == nil {
		t.Error("n has no place")
	}
}

// TestACoordinatorAnswersNoOther shows that of two that coordinate neither goes on.
func TestACoordinatorAnswersNoOther(t *testing.T) {
	s := newSolo(t)
	s.View(0, []ID{s.self, "n", "z"})
	s.hears("n", wire.SumStatus, wire.Sum{Length: 1})
	s.Outcomes()
	s.hears("z", wire.SumAsk, wire.Sum{})
	if w := s.told("z", wire.SumNone); w != nil {
		t.Error("it says that it knows nothing")
	}
}

// TestACoordinatorAsksItself shows that a coordinator whose own caller is placed by another gives
// out no place.
func TestACoordinatorAsksItself(t *testing.T) {
	s := newSolo(t, "z")
	s.holds("z")
	s.View(0, []ID{s.self, "n", "z"})
	s.hears("n", wire.SumStatus, wire.Sum{Length: 1, Timeout: 1000, Question: 1})
	s.hears("z", wire.SumNone, wire.Sum{Question: 1})
	s.now += 2 * time.Second
	s.Tick(s.now)
	for _, o := range s.Outcomes() {
		if k := o.Message.Kind; k == wire.SumPlace || k == wire.SumStatus && o.To != "z" {
			t.Fatalf("%s is told %+v", o.To, o.Message)
		}
	}
	s.hears("z", wire.SumLeader, wire.Sum{Next: string(s.self)})
	s.Outcomes()
	s.now += 2 * time.Second
	s.Tick(s.now)
	if w := s.told("n", wire.SumPlace); w == nil || w.Size != 2 {
		t.Errorf("n is told %+v", w)
	}
}
