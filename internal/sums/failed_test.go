package sums

import (
	"testing"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// moved is the status of one that waits in a sum of what is moved.
func (s *solo) moved(from ID) {
	s.hears(from, wire.SumStatus, wire.Sum{Op: uint8(Moved), Length: 2, Least: 1, Term: 1})
}

// TestWhatHasFailedIsNotMadeBySome: a member that has heard that a sum failed says so to who coordinates after that, and then it fails for those too
// that have not heard it: they would have a result, and the others another, by the next name.
func TestWhatHasFailedIsNotMadeBySome(t *testing.T) {
	s := newSolo(t, "a", "b")
	s.Call(0, Call{Name: "x", Op: Moved, Length: 2, Least: 1})
	s.hears("a", wire.SumFault, wire.Sum{Op: codeOf(ErrTooFew), Detail: "attempts have come to nothing"})
	if s.Outcomes(); !s.Failed("x") {
		t.Error("it does not know that the sum has failed")
	}
	s.here("b")
	s.hears("b", wire.SumAsk, wire.Sum{Question: 5})
	said := s.told("b", wire.SumDone)
	if said == nil || said.Attempt != 0 || said.Question != 5 || said.Op != codeOf(ErrTooFew) {
		t.Fatalf("b is told %+v", said)
	}

	s = newSolo(t)
	s.View(0, []ID{s.self, "n", "o"})
	s.moved("n")
	asked := s.told("o", wire.SumAsk)
	if asked == nil {
		t.Fatal("o is not asked")
	}
	said.Question = asked.Question
	s.hears("o", wire.SumDone, *said)
	if w := s.told("n", wire.SumFault); w == nil || w.Op != codeOf(ErrTooFew) || !s.Failed("x") {
		t.Errorf("n is told %+v", w)
	}
}

// TestWhoLeftASumDoesNotSayThatItFailed: the others may have made it, or make it yet.
func TestWhoLeftASumDoesNotSayThatItFailed(t *testing.T) {
	for what, leaves := range map[string]func(*solo){
		"it came too late": func(s *solo) { s.hears("a", wire.SumFault, wire.Sum{Op: codeOf(ErrOver)}) },
		"it was thrown out": func(s *solo) {
			s.hears("a", wire.SumFault, wire.Sum{Op: codeOf(ErrUnreachable)})
		},
		"it has waited for long": func(s *solo) {
			s.now = s.open["x"].own.limit()
			s.Tick(s.now)
		},
	} {
		s := newSolo(t, "a")
		s.Call(0, Call{Name: "x", Op: Moved, Length: 2, Least: 1})
		leaves(s)
		if s.Outcomes(); s.Failed("x") || !s.Over("x") {
			t.Errorf("%s: failed: %t, over: %t", what, s.Failed("x"), s.Over("x"))
		}
	}
}

// TestWhoHasTheOneResultSaysSo, of whatever sum it is asked about, and to whoever wants it to coordinate another, whoever it has it from.
func TestWhoHasTheOneResultSaysSo(t *testing.T) {
	s := newSolo(t)
	s.View(0, []ID{s.self, "n"})
	s.Call(0, Call{Name: "x", Op: Moved, Length: 2, Least: 1})
	s.Cancel(0, "x")
	s.Outcomes()
	s.Has(7)
	s.hears("n", wire.SumAsk, wire.Sum{Question: 5})
	if w := s.told("n", wire.SumDone); w == nil || w.Attempt != 7 || w.Question != 5 {
		t.Errorf("asked, it says %+v", w)
	}
	s.moved("n")
	if w := s.told("n", wire.SumFault); w == nil || w.Op != codeOf(ErrOver) {
		t.Errorf("one that begins another is told %+v", w)
	}
}
