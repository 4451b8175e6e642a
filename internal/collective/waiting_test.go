package collective_test

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// three is a world of a, b and c, of whom b coordinates, that all call a sum but those who are named.
func three(t *testing.T, but ...topology.PeerID) *world {
	w := newWorld(t, 1, 3, width)
	for _, p := range w.peers {
		p.calls = []string{"sum"}
	}
	for _, id := range but {
		w.peer(id).calls = nil
	}
	for _, p := range w.peers {
		p.next()
	}
	return w
}

// has shows that a peer has the sum of the parts of some by a moment.
func (w *world) has(id topology.PeerID, parts string, by time.Duration) {
	w.queue.Run(by)
	if e, ended := w.peer(id).ends["sum"]; !ended || e.err != nil || w.partsOf(e.sum[0]) != parts {
		w.t.Errorf("after %s %s has the sum of %q (ended: %t, %v), want %q", by, id, w.partsOf(e.sum[0]), ended, e.err, parts)
	}
}

// TestWhoFallsSilentIsNotWaitedForLong: whoever freezes at whatever moment, and however late anybody is told of it, the others have one sum
// within a few deadlines, in which both their parts are.
func TestWhoFallsSilentIsNotWaitedForLong(t *testing.T) {
	for moment := range 12 {
		for _, victim := range []topology.PeerID{"a", "b", "c"} {
			w := three(t)
			w.at(moment, w.peer(victim).freezes)
			w.queue.Run(5 * deadline)
			w.check([]string{"sum"})
			for _, p := range w.peers {
				if p.id != victim && p.ends["sum"].err != nil {
					t.Errorf("%s freezes after %d ms: %s has %v", victim, moment, p.id, p.ends["sum"].err)
				}
			}
		}
	}
}

// TestATransferThatHangs breaks an attempt off when the deadline has passed, and no later.
func TestATransferThatHangs(t *testing.T) {
	for hangs := range 8 {
		w := three(t)
		sent := 0
		w.drops = func(_ *peer, a collective.Action) bool {
			if a.Kind == collective.Send {
				sent++
			}
			return a.Kind == collective.Send && sent == hangs+1
		}
		for _, id := range []topology.PeerID{"a", "b", "c"} {
			w.has(id, "abc", 2*deadline)
		}
		if sent < hangs {
			t.Errorf("%d transfers: the test shows nothing", sent)
		}
	}
}

// TestWhatWasRefusedIsSentAgain: at once when the partner is ready, though its refusal comes after that, and in time where its word is lost.
func TestWhatWasRefusedIsSentAgain(t *testing.T) {
	early := func() *world {
		w := newWorld(t, 1, 3, width)
		w.slow[[2]topology.PeerID{"b", "a"}] = 9 * time.Millisecond
		w.call(1, 0)
		return w
	}
	w := early()
	w.refuse = 20 * time.Millisecond
	asked := 0
	w.drops = func(_ *peer, a collective.Action) bool {
		if a.Kind == collective.Tell && a.Message.Kind == collective.MessageRetry {
			asked++
		}
		return false
	}
	w.queue.Run(100 * time.Millisecond)
	w.check([]string{"sum 1"})
	if asked != 2 {
		t.Errorf("a has asked %d times for what came early: the test shows nothing", asked)
	}
	w = early()
	w.drops = func(_ *peer, a collective.Action) bool {
		return a.Kind == collective.Tell && a.Message.Kind == collective.MessageRetry
	}
	w.queue.Run(deadline / 2)
	w.check([]string{"sum 1"})
}

// sums has peers call another sum, each after so many milliseconds.
func (w *world) sums(name string, after map[topology.PeerID]int) {
	for _, p := range w.peers {
		if ms, calls := after[p.id]; calls {
			w.at(ms, func() {
				p.calls = []string{name}
				p.next()
			})
		}
	}
}

// TestWhomTheOwnerHasCoordinateCallsLast: what the others have said is kept for it, and it begins at once.
func TestWhomTheOwnerHasCoordinateCallsLast(t *testing.T) {
	w := three(t, "a", "b", "c")
	w.restart("a")
	w.sums("the first, in which a asks who is there", map[topology.PeerID]int{"a": 0, "b": 0, "c": 0})
	w.queue.Run(deadline)
	w.sums("sum", map[topology.PeerID]int{"a": 1100, "b": 0, "c": 0})
	for _, id := range []topology.PeerID{"a", "b", "c"} {
		w.has(id, "abc", deadline+1150*time.Millisecond)
	}
	if leader := w.peer("c").Coordinator(); leader != "a" {
		t.Errorf("%s coordinates", leader)
	}
}

// TestAfterALongRest nobody is silent who had nothing to say: each has the deadline to come.
func TestAfterALongRest(t *testing.T) {
	w := three(t, "a", "b", "c")
	w.sums("before", map[topology.PeerID]int{"a": 0, "b": 0, "c": 0})
	w.queue.Run(time.Hour)
	w.sums("sum", map[topology.PeerID]int{"a": 1500, "b": 0, "c": 1500})
	for _, id := range []topology.PeerID{"a", "b", "c"} {
		w.has(id, "abc", time.Hour+deadline)
	}
}

// TestWhoIsWaitedFor: all members at first, then those of the last sum and whom the coordinator expects; nobody whom it holds to be asleep.
func TestWhoIsWaitedFor(t *testing.T) {
	w := three(t, "c")
	w.has("b", "ab", 2*deadline)
	b := w.peer("b")
	if !b.Over("sum") || b.Over("another") || len(b.Participants()) != 2 {
		t.Errorf("over: %t, another: %t, participants %v", b.Over("sum"), b.Over("another"), b.Participants())
	}
	again := func(within time.Duration, ends bool) {
		t.Helper()
		w.sums(b.called+" again", map[topology.PeerID]int{"a": 1, "b": 1})
		w.queue.Run(w.queue.Now() + within)
		if e, ended := b.ends[b.called]; ended != ends || ended && w.partsOf(e.sum[0]) != "ab" {
			t.Errorf("%q within %s: ended: %t, of %q", b.called, within, ended, w.partsOf(e.sum[0]))
		}
	}
	again(deadline/4, true)
	w.status("c", "b", "another", nil) // it is awake
	b.does(func() { b.Expect("c") })
	again(deadline/2, false)
	w.queue.Run(w.queue.Now() + deadline)
	b.does(func() {
		b.Expect("c")
		b.Excuse("c")
	})
	again(deadline/4, true)
}
