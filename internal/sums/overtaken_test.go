package sums

import (
	"testing"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// TestAWordThatWasOvertakenLeavesNobodyOut: that a participant has its place may arrive after that it has the sum, where words are
// not in order. It holds it all the same, before the sum counts and when it does.
func TestAWordThatWasOvertakenLeavesNobodyOut(t *testing.T) {
	s := newSolo(t)
	s.leader, s.group = s.self, []ID{"n", "o"}
	s.View(0, []ID{s.self, "n", "o"})
	says := func(id ID, stage Stage, attempt uint64) {
		s.hears(id, wire.SumStatus, wire.Sum{Stage: uint8(stage), Attempt: attempt, Length: 2, Term: 1})
	}
	says("n", Waiting, 0)
	says("o", Waiting, 0)
	place := s.told("n", wire.SumPlace)
	if place == nil {
		t.Fatal("n has no place")
	}
	says("n", Holding, place.Attempt)
	says("n", Placed, place.Attempt)
	says("o", Holding, place.Attempt)
	if s.told("n", wire.SumCommit) == nil {
		t.Error("n is not told that the sum counts")
	}
	says("n", Placed, place.Attempt)
	if s.told("n", wire.SumCommit) == nil {
		t.Error("n is told something else when the sum counts")
	}
}
