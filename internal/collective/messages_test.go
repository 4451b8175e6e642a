package collective_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/sums"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// status has one tell another that it waits in a sum, as an answer to its first question: of numbers of this run unless something else is said.
func (w *world) status(from, to topology.PeerID, name string, change func(*wire.Sum)) {
	said := &wire.Sum{Kind: wire.SumStatus, Name: name, Op: uint8(sums.Moved), Length: width, Least: 1, Timeout: uint32(deadline.Milliseconds()), Term: 1, Question: 1}
	if change != nil {
		change(said)
	}
	w.peer(to).does(func() { w.peer(to).Receive(from, collective.Message{Sum: said}) })
}

// TestWhatNoPeerOfARunSays: one that brings another number of values, or does something else with them, does not have the sum fail for all; one that
// needs more members than there are, or more patience than a deadline while one does not come, does not keep the others from their places.
func TestWhatNoPeerOfARunSays(t *testing.T) {
	for what, change := range map[string]func(*wire.Sum){
		"another length":    func(s *wire.Sum) { s.Length = 7 },
		"another operation": func(s *wire.Sum) { s.Op = uint8(sums.Gather) },
		"more members":      func(s *wire.Sum) { s.Least = 9 },
		"more patience":     func(s *wire.Sum) { s.Timeout = 1 << 31 },
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, 1, 4, width)
			b := w.peer("b")
			w.peer("c").frozen = true // the test says what it does
			said := wire.Sum{Length: width, Op: uint8(sums.Moved)}
			change(&said)
			takesPart := said.Length == width && said.Op == uint8(sums.Moved) // else it is as one that says nothing
			for i := range 40 {
				w.at(100*i, func() {
					w.status("c", "b", "sum", change)
					b.does(func() {
						b.members.Spoke("d", b.Now) // of something else
						if takesPart {
							b.members.Spoke("c", b.Now)
						}
					})
				})
			}
			for _, id := range []topology.PeerID{"a", "b"} {
				w.peer(id).calls = []string{"sum"}
				w.peer(id).next()
			}
			if w.queue.Run(3 * deadline / 2); !b.Placed() && w.partsOf(b.ends["sum"].sum[0]) != "ab" {
				t.Errorf("b has no place, and no sum: %v", b.ends["sum"].err)
			}
		})
	}
}

// TestAMemberIsInOneSum: two that have said of as many other sums as there is room for that they take part in them do so in the last that they say:
// the others are forgotten.
func TestAMemberIsInOneSum(t *testing.T) {
	w := newWorld(t, 1, 3, width)
	for i := range sums.MaxOpen {
		w.status("a", "b", fmt.Sprint("another ", i), nil)
		w.status("c", "b", fmt.Sprint("another ", i), nil)
	}
	w.call(1, 0)
	w.queue.Run(deadline / 4)
	w.check([]string{"sum 1"})
	if e := w.peer("a").ends["sum 1"]; w.partsOf(e.sum[0]) != "abc" {
		t.Errorf("the sum is of %q", w.partsOf(e.sum[0]))
	}
}

// TestOffersThatDoNotFit are refused for good: what is no chunk of a sum, and a chunk that is not due.
func TestOffersThatDoNotFit(t *testing.T) {
	w := three(t)
	b := w.peer("b")
	w.queue.Run(4500 * time.Microsecond) // all have their places
	if !b.Placed() || !b.Under() {
		t.Fatal("b has no place")
	}
	attempt := w.peer("a").attempt
	for _, offer := range []collective.Transfer{
		{From: collective.Sum, Into: collective.Sum, Parts: 1, Round: attempt},
		{From: collective.Parameters, Into: collective.Parameters, Parts: 2, Round: attempt},
		{From: collective.Sum, Into: collective.Sum, Part: 0, Parts: 2, Add: true, Round: attempt},  // which b hands on
		{From: collective.Sum, Into: collective.Sum, Part: 1, Parts: 2, Add: false, Round: attempt}, // which a does not have
		{From: collective.Sum, Into: collective.Sum, Part: 1, Parts: 2, Add: true, Round: attempt},  // which a sends already
	} {
		x := &transfer{Transfer: offer, id: 77, from: w.peer("a"), to: b}
		b.taking[x.key()] = x
		b.does(func() { b.Offered(x.event(collective.Offered, true)) })
		if !x.over {
			t.Errorf("b takes %s", offer)
		}
	}
	w.queue.Run(deadline)
	w.check([]string{"sum"})
}

// TestASumThatHasFailedIsFollowedByAnother, of another name, for who calls it again; who was left out of one is told so again.
func TestASumThatHasFailedIsFollowedByAnother(t *testing.T) {
	for code, left := range map[uint8]bool{2: false, 3: true} { // too few took part; it was made without this member
		w := newWorld(t, 1, 3, width)
		a := w.peer("a")
		called := ""
		w.drops = func(from *peer, act collective.Action) bool {
			if from == a && act.Message.Sum != nil && act.Message.Sum.Kind == wire.SumStatus {
				called = act.Message.Sum.Name
			}
			return true
		}
		a.does(func() { a.Call("sum", deadline, 1) })
		a.does(func() {
			a.Receive("b", collective.Message{Sum: &wire.Sum{Kind: wire.SumFault, Name: "sum", Op: code, Detail: "as the test wants it"}})
		})
		if e := a.ends[a.called]; e.err == nil || e.left != left {
			t.Errorf("code %d: %v, left out: %t", code, e.err, e.left)
		}
		clear(a.ends)
		called = ""
		a.does(func() { a.Call("sum", deadline, 1) })
		if want := map[bool]string{true: "", false: "sum, try 2"}[left]; called != want {
			t.Errorf("code %d: it calls %q, want %q", code, called, want)
		}
	}
}
