package collective

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// Flights are the transfers and exchanges of a machine that are not over, at both sides,
// the actions of the event that it handles, and the timer by which it speaks again while
// it waits: any word may be lost.
type Flights struct {
	Self     topology.PeerID
	Deadline time.Duration // after which a transfer is stuck
	Now      time.Duration // of the event that is handled
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
	Aborted  bool
}

func (f Flight) is(e Event) bool { return f.ID == e.Exchange && f.Peer == e.Peer }

// Begin takes up an event, whose actions End returns.
func (f *Flights) Begin(now time.Duration, actions []Action) { f.Now, f.actions = now, actions }

// End returns the actions.
func (f *Flights) End() []Action {
	actions := f.actions
	f.actions = nil
	return actions
}

// Do asks for an action.
func (f *Flights) Do(a Action) { f.actions = append(f.actions, a) }

// Ask asks for one that needs no more than its kind.
func (f *Flights) Ask(kind averaging.ActionKind) { f.Do(Action{Action: averaging.Action{Kind: kind}}) }

// Tell tells another a word.
func (f *Flights) Tell(to topology.PeerID, w Message) {
	if to != "" && to != f.Self {
		f.Do(Action{Action: averaging.Action{Kind: Tell, Peer: to}, Message: w})
	}
}

// Send begins a transfer, without rounding if it is to be exact.
func (f *Flights) Send(to topology.PeerID, t Transfer, exact bool) {
	id := f.take(to, t)
	f.Do(Action{Action: averaging.Action{Kind: Send, Peer: to, Exchange: id}, Transfer: t, Exact: exact})
}

// Propose begins an exchange, one of so many that may change this peer's model.
func (f *Flights) Propose(to topology.PeerID, overlap int) {
	id := f.take(to, Transfer{})
	f.Do(Action{Action: averaging.Action{Kind: averaging.Propose, Peer: to, Exchange: id, Overlap: overlap}})
}

func (f *Flights) take(to topology.PeerID, t Transfer) averaging.ExchangeID {
	f.LastID++
	f.Out = append(f.Out, Flight{ID: f.LastID, Peer: to, Transfer: t, Began: f.Now})
	return f.LastID
}

// Accept takes part in what an event offers or proposes, one of so many that may change
// this peer's model.
func (f *Flights) Accept(e Event, overlap int) {
	f.In = append(f.In, Flight{ID: e.Exchange, Peer: e.Peer, Transfer: e.Transfer, Began: f.Now})
	f.Do(Action{Action: averaging.Action{Kind: averaging.Accept, Peer: e.Peer, Exchange: e.Exchange, Inbound: true, Overlap: overlap}})
}

// Refuse declines it.
func (f *Flights) Refuse(e Event, why averaging.Reason) {
	f.Do(Action{Action: averaging.Action{Kind: averaging.Refuse, Peer: e.Peer, Exchange: e.Exchange, Inbound: true, Reason: why}})
}

// Accepted notes that the partner takes part.
func (f *Flights) Accepted(e Event) {
	for i := range f.Out {
		if f.Out[i].is(e) {
			f.Out[i].Accepted = true
		}
	}
}

// Landed takes the flight that an event ends out of its list. It reports false if there
// is none such.
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

// With is any flight of a peer, or of all if it is empty.
func With(peer topology.PeerID) func(Flight) bool {
	return func(x Flight) bool { return peer == "" || x.Peer == peer }
}

// AbortOut breaks off some of what this peer sends.
func (f *Flights) AbortOut(which func(Flight) bool) {
	f.Out = slices.DeleteFunc(f.Out, func(x Flight) bool {
		if !which(x) {
			return false
		}
		f.Do(Action{Action: averaging.Action{Kind: averaging.Abort, Peer: x.Peer, Exchange: x.ID}})
		return true
	})
}

// AbortIn breaks off some of what comes.
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

// Overdue breaks off what has lasted for the deadline, and yields those of it that are
// outbound, with which all else goes that is sent to the same peer.
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

// Arm sets the timer while there is something to wait for, if it is not set.
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
	perDeadline = 8 // times, at least, that a waiting peer speaks before its deadline
	// minSlice and maxSlice bound how often it speaks, however long its deadline is:
	// words that are lost should cost no more than that.
	minSlice, maxSlice = time.Millisecond, time.Second
)

// Slice is how long a waiting peer waits before it speaks again.
func (f *Flights) Slice() time.Duration { return min(max(f.Deadline/perDeadline, minSlice), maxSlice) }
