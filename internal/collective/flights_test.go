package collective_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// flown are flights of which a test gives every event by hand, at a time.
type flown struct {
	collective.Flights
	t *testing.T
}

func newFlown(t *testing.T) *flown {
	return &flown{collective.Flights{Self: "self", Deadline: 8 * time.Second}, t}
}

// does shows that something asks for these actions and no others.
func (f *flown) does(at time.Duration, what func(), want ...string) {
	f.t.Helper()
	f.Begin(at, nil)
	what()
	var got []string
	for _, a := range f.End() {
		got = append(got, a.String())
	}
	if !slices.Equal(got, want) {
		f.t.Errorf("it asks for %q, want %q", got, want)
	}
}

func event(peer topology.PeerID, id averaging.ExchangeID, inbound bool) collective.Event {
	return collective.Event{Event: averaging.Event{Peer: peer, Exchange: id, Inbound: inbound}, Transfer: collective.Transfer{Parts: 1}}
}

// TestFlightsOfBothSides: what this peer sends is told apart from what it takes, though both have one number, and each lands once.
func TestFlightsOfBothSides(t *testing.T) {
	f := newFlown(t)
	f.does(time.Second, func() { f.Send("a", collective.Transfer{From: collective.Sum, Into: collective.Sum, Parts: 2}, true) },
		"send exchange 1 to a: sum part 0 of 2, replacing sum, round 0")
	f.does(time.Second, func() { f.Accept(event("a", 1, true), 1) }, "accept exchange 1 of a")
	if !f.SendingTo("a", collective.Sum) || f.SendingTo("a", collective.Parameters) || f.SendingTo("b", collective.Sum) || !f.TakingFrom("a") || f.TakingFrom("b") {
		t.Errorf("it sends %v and takes %v", f.Out, f.In)
	}
	if !f.Taking(event("a", 1, true)) || f.Taking(event("a", 2, true)) || f.Taking(event("b", 1, true)) {
		t.Error("it takes something else")
	}
	if f.Accepted(event("a", 1, false)); !f.Out[0].Accepted || f.In[0].Accepted {
		t.Errorf("accepted: %v and %v", f.Out, f.In)
	}
	if _, landed := f.Landed(event("b", 1, false)); landed {
		t.Error("what goes to another has landed")
	}
	if x, landed := f.Landed(event("a", 1, true)); !landed || x.Transfer.Parts != 1 || len(f.In) > 0 || len(f.Out) != 1 {
		t.Errorf("landed %t: %v; left are %v and %v", landed, x, f.In, f.Out)
	}
	if x, landed := f.Landed(event("a", 1, false)); !landed || x.Began != time.Second || len(f.Out) > 0 {
		t.Errorf("landed %t: %v; left are %v", landed, x, f.Out)
	}
	if _, landed := f.Landed(event("a", 1, false)); landed {
		t.Error("it lands twice")
	}
}

// TestWhatIsAborted: what this peer sends is over at once, what it takes when its end is told, since it may still change a buffer; neither is aborted twice.
func TestWhatIsAborted(t *testing.T) {
	f := newFlown(t)
	f.Begin(0, nil)
	f.Propose("a", 1)
	f.Propose("b", 1)
	f.Accept(event("a", 7, true), 1)
	f.Accept(event("b", 8, true), 1)
	f.End()
	f.does(0, func() { f.Abort("a") }, "abort outbound exchange 1 with a", "abort inbound exchange 7 with a")
	f.does(0, func() { f.Abort("") }, "abort outbound exchange 2 with b", "abort inbound exchange 8 with b")
	f.does(0, func() { f.Abort("") })
	if len(f.Out) > 0 || len(f.In) != 2 {
		t.Errorf("left are %v and %v", f.Out, f.In)
	}
	if x, landed := f.Landed(event("a", 7, true)); !landed || !x.Aborted {
		t.Errorf("landed %t: %v", landed, x)
	}
}

// TestWhatIsOverdue is broken off when it has lasted for the deadline, with all else that goes to the same peer, and the caller hears of what it sent.
func TestWhatIsOverdue(t *testing.T) {
	f := newFlown(t)
	f.Begin(time.Second, nil)
	f.Propose("a", 1)
	f.Accept(event("b", 7, true), 1)
	f.Begin(2*time.Second, nil)
	f.Propose("a", 1)
	f.Propose("c", 1)
	overdue := func() (peers []topology.PeerID) {
		for x := range f.Overdue {
			peers = append(peers, x.Peer)
		}
		return peers
	}
	f.does(9*time.Second-1, func() {
		if peers := overdue(); len(peers) > 0 {
			t.Errorf("early, overdue are those to %v", peers)
		}
	})
	f.does(9*time.Second, func() {
		if peers := overdue(); !slices.Equal(peers, []topology.PeerID{"a"}) {
			t.Errorf("overdue are those to %v", peers)
		}
	}, "abort inbound exchange 7 with b", "abort outbound exchange 1 with a", "abort outbound exchange 2 with a")
	if len(f.Out) != 1 || f.Out[0].Peer != "c" {
		t.Errorf("left is %v", f.Out)
	}
}

// TestOneTimerAtATime: it is set once however often it is needed, counts once, and not if it is one of before.
func TestOneTimerAtATime(t *testing.T) {
	f := newFlown(t)
	ticked := func(id averaging.ExchangeID) bool {
		return f.Ticked(collective.Event{Event: averaging.Event{Timer: averaging.RoundDeadline, Exchange: id}})
	}
	arm := func(needed bool) func() { return func() { f.Arm(needed, f.Slice()) } }
	f.does(0, arm(false))
	if ticked(0) {
		t.Error("a timer fires that was never set")
	}
	f.does(0, arm(true), "set timer round-deadline for exchange 1 with  after 1s")
	f.does(0, arm(true))
	if ticked(7) || !ticked(1) || ticked(1) {
		t.Error("it is not the timer that was set which counts, once")
	}
	f.does(0, arm(true), "set timer round-deadline for exchange 2 with  after 1s")
	if ticked(1) {
		t.Error("the timer of before counts")
	}
	for deadline, slice := range map[time.Duration]time.Duration{time.Microsecond: time.Millisecond, 80 * time.Millisecond: 10 * time.Millisecond, time.Hour: time.Second} {
		if f.Deadline = deadline; f.Slice() != slice {
			t.Errorf("of %s a slice is %s, want %s", deadline, f.Slice(), slice)
		}
	}
}

// TestNobodySpeaksToItself, nor to nobody.
func TestNobodySpeaksToItself(t *testing.T) {
	f := newFlown(t)
	f.does(0, func() {
		f.Tell("self", collective.Message{Kind: 1})
		f.Tell("", collective.Message{Kind: 1})
		f.Tell("a", collective.Message{Kind: 1})
	}, "tell a: word 1 of round 0: 0")
}
