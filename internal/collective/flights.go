package collective

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/sums"
	"github.com/seed-97356399/murmuration/topology"
)

// Flights holds the transfers and exchanges of a machine that are not over, at both sides,
// the actions for the current event, and the timer by which it retransmits while it waits,
// since any message may be lost.
type Flights struct {
	Self     topology.PeerID
	Deadline time.Duration // after which a transfer counts as stuck
	Now      time.Duration // time of the current event
	LastID   averaging.ExchangeID
	Out, In  []Flight
	actions  []Action
	tick     averaging.ExchangeID // of the timer that is set, 0 if none is
	ticks    averaging.ExchangeID
}

// Flight is a transfer or exchange that is not over. An inbound one that was aborted
// stays until its end is reported, since until then it may still change a buffer.
type Flight struct {
	ID       averaging.ExchangeID
	Peer     topology.PeerID
	Transfer Transfer
	Began    time.Duration
	Accepted bool // by the partner; of outbound ones
	Answered time.Duration
	Aborted  bool
}

func (f Flight) is(e Event) bool { return f.ID == e.Exchange && f.Peer == e.Peer }

// Begin begins the handling of an event; End returns its actions.
func (f *Flights) Begin(now time.Duration, actions []Action) { f.Now, f.actions = now, actions }

// End returns the actions.
func (f *Flights) End() []Action {
	actions := f.actions
	f.actions = nil
	return actions
}

// Do adds an action.
func (f *Flights) Do(a Action) { f.actions = append(f.actions, a) }

// Ask adds an action without fields other than its kind.
func (f *Flights) Ask(kind averaging.ActionKind) { f.Do(Action{Action: averaging.Action{Kind: kind}}) }

// Tell sends a message.
func (f *Flights) Tell(to topology.PeerID, w Message) {
	if to != "" && to != f.Self {
		f.Do(Action{Action: averaging.Action{Kind: Tell, Peer: to}, Message: w})
	}
}

// Note reports a fact about members to people.
func (f *Flights) Note(what, why string, who ...topology.PeerID) {
	f.Do(Action{Action: averaging.Action{Kind: Note}, Fact: &sums.Fact{What: what, Who: who, Why: why}})
}

// Send begins a transfer, without rounding if it is to be exact.
func (f *Flights) Send(to topology.PeerID, t Transfer, exact bool) {
	id := f.take(to, t)
	f.Do(Action{Action: averaging.Action{Kind: Send, Peer: to, Exchange: id}, Transfer: t, Exact: exact})
}

// Propose begins an exchange; overlap is the number of exchanges that may change this peer's model.
func (f *Flights) Propose(to topology.PeerID, overlap int) {
	id := f.take(to, Transfer{})
	f.Do(Action{Action: averaging.Action{Kind: averaging.Propose, Peer: to, Exchange: id, Overlap: overlap}})
}

func (f *Flights) take(to topology.PeerID, t Transfer) averaging.ExchangeID {
	f.LastID++
	f.Out = append(f.Out, Flight{ID: f.LastID, Peer: to, Transfer: t, Began: f.Now})
	return f.LastID
}

// Accept accepts the offer or proposal of an event; overlap is the number of exchanges that
// may change this peer's model.
func (f *Flights) Accept(e Event, overlap int) {
	f.In = append(f.In, Flight{ID: e.Exchange, Peer: e.Peer, Transfer: e.Transfer, Began: f.Now})
	f.Do(Action{Action: averaging.Action{Kind: averaging.Accept, Peer: e.Peer, Exchange: e.Exchange, Inbound: true, Overlap: overlap}})
}

// Refuse refuses the offer or proposal of an event.
func (f *Flights) Refuse(e Event, why averaging.Reason) {
	f.Do(Action{Action: averaging.Action{Kind: averaging.Refuse, Peer: e.Peer, Exchange: e.Exchange, Inbound: true, Reason: why}})
}

// Accepted notes that the partner has accepted.
func (f *Flights) Accepted(e Event) {
	for i := range f.Out {
		if f.Out[i].is(e) {
			f.Out[i].Accepted, f.Out[i].Answered = true, f.Now
		}
	}
}

// Landed removes the flight that an event ends from its list. It returns false if there is
// no such flight.
func (f *Flights) Landed(e Event) (Flight, bool) {
	list := &f.Out
	if e.Inbound {
		list = &f.In
	}
	i := slices.IndexFunc(*list, func(x Flight) bool { return x.is(e) })
	if i < 0 {
		return Flight{}, false
	}
	x := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return x, true
}

// Abort breaks off the flights of a peer, or of all if it is empty.
func (f *Flights) Abort(peer topology.PeerID) {
	f.AbortOut(With(peer))
	f.AbortIn(With(peer))
}

// With selects the flights of a peer, or all flights if the id is empty.
func With(peer topology.PeerID) func(Flight) bool {
	return func(x Flight) bool { return peer == "" || x.Peer == peer }
}

// AbortOut breaks off selected outbound flights.
func (f *Flights) AbortOut(which func(Flight) bool) {
	f.Out = slices.DeleteFunc(f.Out, func(x Flight) bool {
		if !which(x) {
			return false
		}
		f.Do(Action{Action: averaging.Action{Kind: averaging.Abort, Peer: x.Peer, Exchange: x.ID}})
		return true
	})
}

// AbortIn breaks off selected inbound flights.
func (f *Flights) AbortIn(which func(Flight) bool) {
	for i := range f.In {
		if x := &f.In[i]; !x.Aborted && which(*x) {
			x.Aborted = true
			f.Do(Action{Action: averaging.Action{Kind: averaging.Abort, Peer: x.Peer, Exchange: x.ID, Inbound: true}})
		}
	}
}

// SendingTo tells whether a transfer from a buffer to a peer is in flight.
func (f *Flights) SendingTo(peer topology.PeerID, from Buffer) bool {
	return slices.ContainsFunc(f.Out, func(x Flight) bool { return x.Peer == peer && x.Transfer.From == from })
}

// TakingFrom tells whether an inbound flight of a peer is not over.
func (f *Flights) TakingFrom(peer topology.PeerID) bool {
	return slices.ContainsFunc(f.In, func(x Flight) bool { return x.Peer == peer })
}

// Taking tells whether an event is of an inbound flight that is not over.
func (f *Flights) Taking(e Event) bool {
	return slices.ContainsFunc(f.In, func(x Flight) bool { return x.is(e) })
}

// Overdue breaks off flights that have lasted for the deadline, and yields the outbound
// ones. With an outbound one it breaks off all flights to the same peer.
func (f *Flights) Overdue(yield func(Flight) bool) {
	late := func(x Flight) bool { return f.Now-x.Began >= f.Deadline }
	f.AbortIn(late)
	for i := slices.IndexFunc(f.Out, late); i >= 0; i = slices.IndexFunc(f.Out, late) {
		x := f.Out[i]
		if f.AbortOut(With(x.Peer)); !yield(x) {
			return
		}
	}
}

// Arm sets the timer if it is needed and not set.
func (f *Flights) Arm(needed bool, after time.Duration) {
	if !needed || f.tick != 0 {
		return
	}
	f.ticks++
	f.tick = f.ticks
	f.Do(Action{Action: averaging.Action{Kind: averaging.SetTimer, Timer: averaging.RoundDeadline, Exchange: f.tick, After: after}})
}

// Ticked tells whether an event is the timer that was set.
func (f *Flights) Ticked(e Event) bool {
	if e.Timer != averaging.RoundDeadline || e.Exchange != f.tick || f.tick == 0 {
		return false
	}
	f.tick = 0
	return true
}

const (
	perDeadline = 8 // least number of retransmissions before the deadline
	// minSlice and maxSlice bound the time between retransmissions, whatever the deadline,
	// so that a lost message costs no more than that.
	minSlice, maxSlice = time.Millisecond, time.Second
)

// Slice is the time between retransmissions of a waiting peer.
func (f *Flights) Slice() time.Duration { return min(max(f.Deadline/perDeadline, minSlice), maxSlice) }
