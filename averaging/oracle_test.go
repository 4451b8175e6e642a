package averaging_test

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// oracle knows the rules of AD-PSGD and nothing of how the machine keeps them: it
// answers every question by reading the whole history again.
type oracle struct {
	self            topology.PeerID
	every           int
	maxInbound      int
	retry, deadline time.Duration
	history         []entry
}

type entry struct {
	now     time.Duration
	event   averaging.Event
	actions []averaging.Action
}

// at is the oracle as it was before the entry i.
func (o *oracle) at(i int) *oracle {
	before := *o
	before.history = o.history[:i:i]
	return &before
}

// neighbours are the links and role of the newest view.
func (o *oracle) neighbours() (ids []topology.PeerID, role topology.Role) {
	for _, e := range o.history {
		if e.event.Kind == averaging.ViewChanged {
			ids = e.event.Overlay.Neighbours(o.self)
			member, _ := e.event.Overlay.View().Lookup(o.self)
			role = member.Role
		}
	}
	return ids, role
}

// outbound is the exchange that this peer has in flight, if any.
func (o *oracle) outbound() (id averaging.ExchangeID, peer topology.PeerID, open bool) {
	for _, e := range o.history {
		ended := e.event.Kind == averaging.Refused || e.event.Kind == averaging.Finished || e.event.Kind == averaging.Failed
		if ended && !e.event.Inbound && e.event.Exchange == id && e.event.Peer == peer {
			open = false
		}
		for _, a := range e.actions {
			switch {
			case a.Kind == averaging.Propose:
				id, peer, open = a.Exchange, a.Peer, true
			case a.Kind == averaging.Abort && !a.Inbound:
				open = false
			}
		}
	}
	return id, peer, open
}

// mine tells whether the entry i is about the exchange then in flight.
func (o *oracle) mine(i int) bool {
	id, peer, open := o.at(i).outbound()
	e := o.history[i].event
	return open && !e.Inbound && e.Exchange == id && e.Peer == peer
}

// served is an inbound exchange that is not over.
type served struct {
	peer    topology.PeerID
	id      averaging.ExchangeID
	due     time.Duration
	running bool
}

// inbound are the exchanges accepted and not yet reported over, the oldest first.
func (o *oracle) inbound() (all []served) {
	for _, e := range o.history {
		if e.event.Inbound && (e.event.Kind == averaging.Finished || e.event.Kind == averaging.Failed) {
			var left []served
			for _, s := range all {
				if s.peer != e.event.Peer || s.id != e.event.Exchange {
					left = append(left, s)
				}
			}
			all = left
		}
		for _, a := range e.actions {
			if a.Kind == averaging.Accept {
				all = append(all, served{a.Peer, a.Exchange, e.now + o.deadline, true})
			}
			for i := range all {
				if a.Kind == averaging.Abort && a.Inbound && all[i].peer == a.Peer && all[i].id == a.Exchange {
					all[i].running = false
				}
			}
		}
	}
	return all
}

// overlap counts the exchanges that may still change the model.
func (o *oracle) overlap() int {
	_, _, open := o.outbound()
	return len(o.inbound()) + b2i(open) + o.unresolved()
}

func (o *oracle) unresolved() (n int) {
	for _, e := range o.history {
		if e.event.Kind == averaging.Doubt {
			n = e.event.Unresolved
		}
	}
	return n
}

// passedOver tells whether a partner is not to be asked now.
func (o *oracle) passedOver(peer topology.PeerID, now time.Duration) bool {
	return o.barred(peer, now) || o.failing(peer, now) || o.quarantined(peer, now) || o.shunned(peer, now)
}

// barred tells whether a partner has declined in the present view.
func (o *oracle) barred(peer topology.PeerID, now time.Duration) bool {
	barred := false
	for i, e := range o.history {
		switch {
		case e.event.Kind == averaging.ViewChanged:
			barred = false
		case e.event.Kind == averaging.Refused && e.event.Peer == peer && o.mine(i):
			passing := e.event.Reason == averaging.Closing && now < e.now+o.retry
			barred = barred || e.event.Reason == averaging.Unfit || passing
		}
	}
	return barred
}

// failing tells whether a partner is left alone because it has failed.
func (o *oracle) failing(peer topology.PeerID, now time.Duration) bool {
	var until time.Duration
	pause := o.retry
	for i, e := range o.history {
		switch failed, forgiven := o.fate(i, peer); {
		case failed:
			until = max(until, e.now+pause)
			pause = min(2*pause, 4*o.retry)
		case forgiven:
			until, pause = 0, o.retry
		}
	}
	return now < until
}

// slow tells whether a partner comes after the others, since an exchange with it came to
// nothing less than eight times as long ago as it lasted.
func (o *oracle) slow(peer topology.PeerID, now time.Duration) bool {
	var until, began time.Duration
	for i, e := range o.history {
		_, partner, open := o.at(i).outbound()
		switch failed, forgiven := o.fate(i, peer); {
		case failed && open && partner == peer:
			until = max(until, e.now+min(8*(e.now-began), 8*o.retry))
		case forgiven:
			until = 0
		}
		for _, a := range e.actions {
			if a.Kind == averaging.Propose {
				began = e.now
			}
		}
	}
	return now < until
}

// silent tells whether a partner comes after the others, since it has said nothing: forty
// seconds at first, twice as long each time until it says something.
func (o *oracle) silent(peer topology.PeerID, now time.Duration) bool {
	var until time.Duration
	pause := 8 * o.retry
	for i, e := range o.history {
		failed, forgiven := o.fate(i, peer)
		failed = failed && e.event.Kind == averaging.Failed
		switch {
		case forgiven:
			until, pause = 0, 8*o.retry
		case failed && e.event.After > 0:
			until = max(until, e.now+pause)
			pause = min(2*pause, 64*o.retry)
		case failed && o.at(i).accepted():
			pause = 8 * o.retry
		}
	}
	return now < until
}

// accepted tells whether the exchange in flight was.
func (o *oracle) accepted() (accepted bool) {
	for i, e := range o.history {
		if e.event.Kind == averaging.Accepted && o.mine(i) {
			accepted = true
		}
		for _, a := range e.actions {
			accepted = accepted && a.Kind != averaging.Propose
		}
	}
	return accepted
}

// awaits tells whether a partner is the one met last and others go before it: some that can
// be asked, unless they have refused for more than four times as long as exchanges take.
func (o *oracle) awaits(peer topology.PeerID, now time.Duration) bool {
	_, met, _ := o.round()
	neighbours, _ := o.neighbours()
	return peer == met && slices.ContainsFunc(neighbours, func(other topology.PeerID) bool {
		since, mean := o.busy(other)
		return other != peer && o.first(other, now) && (since < 0 || now-since <= time.Duration(4*mean))
	})
}

// busy is since when a partner has refused whatever was proposed, if it has, and how long
// exchanges take in the mean. It is -1 if the partner has not.
func (o *oracle) busy(peer topology.PeerID) (since time.Duration, mean float64) {
	var began time.Duration
	known := false
	since = -1
	for i, e := range o.history {
		switch mine := o.mine(i); {
		case mine && e.event.Kind == averaging.Refused && e.event.Peer == peer && since < 0:
			since = e.now
		case mine && e.event.Kind == averaging.Finished:
			took := float64(e.now - began)
			if !known {
				mean, known = took, true
			} else if mean > 0 {
				took = min(took, 10*mean)
			}
			mean += 0.2 * (took - mean)
		}
		if _, forgiven := o.fate(i, peer); forgiven {
			since = -1
		}
		for _, a := range e.actions {
			if a.Kind == averaging.Propose {
				began = e.now
			}
		}
	}
	return since, mean
}

// first tells whether a partner can be asked and need not wait for others.
func (o *oracle) first(peer topology.PeerID, now time.Duration) bool {
	return !o.passedOver(peer, now) && !o.slow(peer, now) && !o.silent(peer, now)
}

// fate tells whether a peer has failed in the entry i, or what it failed in before counts
// no longer: an exchange went well, or it has left.
func (o *oracle) fate(i int, peer topology.PeerID) (failed, forgiven bool) {
	e := o.history[i].event
	if e.Kind == averaging.ViewChanged {
		_, here := e.Overlay.View().Lookup(peer)
		return false, !here
	}
	if e.Peer != peer {
		return false, false
	}
	failed = e.Kind == averaging.PeerLost ||
		o.mine(i) && (e.Kind == averaging.Failed || e.Kind == averaging.TimerFired && e.Timer == averaging.OutboundDeadline)
	return failed, e.Kind == averaging.Finished && (o.mine(i) || e.Inbound && o.serves(i))
}

// quarantined tells whether a peer is in this one's quarantine.
func (o *oracle) quarantined(peer topology.PeerID, now time.Duration) bool {
	for _, e := range o.history {
		if e.event.Kind == averaging.Quarantined && e.event.Peer == peer && now < e.now+e.event.After {
			return true
		}
	}
	return false
}

// shunned tells whether a peer that holds this one in quarantine is left alone.
func (o *oracle) shunned(peer topology.PeerID, now time.Duration) bool {
	var until time.Duration
	pause := o.retry
	for i, e := range o.history {
		if e.event.Peer != peer {
			continue
		}
		switch {
		case e.event.Kind == averaging.Refused && e.event.Reason == averaging.Quarantine && o.mine(i):
			until = e.now + pause
			pause = min(2*pause, 64*o.retry)
		case e.event.Kind == averaging.Finished && (o.mine(i) || e.event.Inbound && o.serves(i)):
			until, pause = 0, o.retry
		}
	}
	return now < until
}

// serves tells whether the entry i is about an inbound exchange that was not over.
func (o *oracle) serves(i int) bool {
	e := o.history[i].event
	for _, s := range o.at(i).inbound() {
		if s.peer == e.Peer && s.id == e.Exchange {
			return true
		}
	}
	return false
}

// stepsSinceProposal counts the steps after the newest proposal.
func (o *oracle) stepsSinceProposal() int {
	steps := 0
	for _, e := range o.history {
		if e.event.Kind == averaging.StepDone {
			steps++
		}
		for _, a := range e.actions {
			if a.Kind == averaging.Propose {
				steps = 0
			}
		}
	}
	return steps
}

// inboundTimer is what the slot of the timer for inbound exchanges holds.
func (o *oracle) inboundTimer() (timer averaging.Action, at time.Duration, set bool) {
	for _, e := range o.history {
		fired := e.event.Kind == averaging.TimerFired && e.event.Timer == averaging.InboundDeadline
		if fired && e.event.Peer == timer.Peer && e.event.Exchange == timer.Exchange {
			set = false
		}
		for _, a := range e.actions {
			if a.Kind == averaging.SetTimer && a.Timer == averaging.InboundDeadline {
				timer, at, set = a, e.now+a.After, true
			}
		}
	}
	return timer, at, set
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
