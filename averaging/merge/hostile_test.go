package merge

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/sums"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// TestNamesOfOthersDoNotStopAMerge: two members that open all sums that a machine has room for do not keep who coordinates from
// its own, nor have it try without an end.
func TestNamesOfOthersDoNotStopAMerge(t *testing.T) {
	d := newDriven(t, "b", members("b", "a", "c")...)
	if d.Coordinator() != "b" {
		t.Fatalf("%s coordinates", d.Coordinator())
	}
	for i := range sums.MaxOpen {
		for _, id := range []topology.PeerID{"a", "c"} {
			d.now += time.Millisecond
			status := wire.Sum{Kind: wire.SumStatus, Name: fmt.Sprintf("other %d", i), Op: uint8(sums.Moved), Least: 3, Timeout: 1e6, Term: 1, Question: 1}
			d.Decide(d.now, collective.Event{Event: averaging.Event{Kind: collective.Received, Peer: id}, Message: collective.Message{Sum: &status}}, nil)
		}
	}
	d.hear(averaging.Event{Kind: averaging.RunOver})
	if !d.Under() {
		t.Error("no merge is under way")
	}
}

// TestWhatNoPeerOfARunAsksFor: one that brings numbers of another length does not have the merge fail for all, and one that needs
// more members than there are, or more patience, does not hold it up.
func TestWhatNoPeerOfARunAsksFor(t *testing.T) {
	d := newDriven(t, "b", members("b", "a", "c")...)
	says := func(id topology.PeerID, w wire.Sum) (placed bool) {
		w.Kind, w.Name, w.Op, w.Term, w.Question = wire.SumStatus, "merge 1", uint8(sums.Moved), 1, 1
		d.now += time.Millisecond
		for _, a := range d.Decide(d.now, collective.Event{Event: averaging.Event{Kind: collective.Received, Peer: id}, Message: collective.Message{Sum: &w}}, nil) {
			placed = placed || a.Kind == collective.Tell && a.Message.Sum != nil && a.Message.Sum.Kind == wire.SumPlace
		}
		return placed
	}
	says("c", wire.Sum{Length: 7, Least: 1})
	d.hear(averaging.Event{Kind: averaging.RunOver})
	if d.sums != 1 || !d.Under() {
		t.Fatalf("sum %d, under way: %t", d.sums, d.Under())
	}
	says("a", wire.Sum{Least: 1, Timeout: 10_000})
	if !says("c", wire.Sum{Least: 9, Timeout: 1 << 31}) {
		t.Error("no place is given, though all have come")
	}
}
