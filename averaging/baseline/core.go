package baseline

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// core is what the rivals have in common: the actions of the event being handled, the
// transfers and exchanges in flight at both sides, the timer that makes a waiting peer
// speak again, and the trainer.
type core struct {
	config  Config
	now     time.Duration
	actions []averaging.Action
	out, in []flight
	lastID  averaging.ExchangeID
	tick    averaging.ExchangeID // of the timer that is set, 0 if none is
	ticks   averaging.ExchangeID
	waiting bool // the trainer waits for Proceed
	over    bool
	settled bool
	speed   speedometer
}

// flight is a transfer or exchange that is not over. An inbound one that was aborted
// stays until its end is reported, since until then it may still change a buffer.
type flight struct {
	id       averaging.ExchangeID
	peer     topology.PeerID
	transfer averaging.Transfer
	began    time.Duration
	accepted bool // by the partner; of outbound ones
	aborted  bool
}

func (c *core) do(a averaging.Action) { c.actions = append(c.actions, a) }

func (c *core) begin(now time.Duration, actions []averaging.Action) { c.now, c.actions = now, actions }

func (c *core) end() []averaging.Action {
	actions := c.actions
	c.actions = nil
	return actions
}

func (c *core) tell(to topology.PeerID, w averaging.Word) {
	if to != "" && to != c.config.Self {
		c.do(averaging.Action{Kind: averaging.Tell, Peer: to, Word: w})
	}
}

func (c *core) send(to topology.PeerID, t averaging.Transfer) { c.handOut(to, t, false) }

// handOut sends, without rounding if it is to be exact.
func (c *core) handOut(to topology.PeerID, t averaging.Transfer, exact bool) {
	c.lastID++
	c.out = append(c.out, flight{id: c.lastID, peer: to, transfer: t, began: c.now})
	c.do(averaging.Action{Kind: averaging.Send, Peer: to, Exchange: c.lastID, Transfer: t, Exact: exact})
}

func (c *core) accept(e averaging.Event) {
	c.in = append(c.in, flight{id: e.Exchange, peer: e.Peer, transfer: e.Transfer, began: c.now})
	c.do(averaging.Action{Kind: averaging.Accept, Peer: e.Peer, Exchange: e.Exchange, Inbound: true, Overlap: 1})
}

func (c *core) refuse(e averaging.Event, why averaging.Reason) {
	c.do(averaging.Action{Kind: averaging.Refuse, Peer: e.Peer, Exchange: e.Exchange, Inbound: true, Reason: why})
}

// accepted notes that the partner takes part.
func (c *core) accepted(e averaging.Event) {
	for i := range c.out {
		if f := &c.out[i]; f.id == e.Exchange && f.peer == e.Peer {
			f.accepted = true
		}
	}
}

// landed takes the flight that an event ends out of its list. It reports false if there
// is none such.
func (c *core) landed(e averaging.Event) (flight, bool) {
	list := &c.out
	if e.Inbound {
		list = &c.in
	}
	i := slices.IndexFunc(*list, func(f flight) bool { return f.id == e.Exchange && f.peer == e.Peer })
	if i < 0 {
		return flight{}, false
	}
	f := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return f, true
}

// abort breaks off the flights of a peer, or of all if it is empty.
func (c *core) abort(peer topology.PeerID) {
	c.abortOut(peer)
	c.abortIn(peer)
}

func (c *core) abortOut(peer topology.PeerID) {
	c.out = slices.DeleteFunc(c.out, func(f flight) bool {
		if peer != "" && f.peer != peer {
			return false
		}
		c.do(averaging.Action{Kind: averaging.Abort, Peer: f.peer, Exchange: f.id})
		return true
	})
}

func (c *core) abortIn(peer topology.PeerID) {
	for i := range c.in {
		if f := &c.in[i]; !f.aborted && (peer == "" || f.peer == peer) {
			f.aborted = true
			c.do(averaging.Action{Kind: averaging.Abort, Peer: f.peer, Exchange: f.id, Inbound: true})
		}
	}
}

// sendingTo tells whether a transfer from a buffer to a peer is in flight.
func (c *core) sendingTo(peer topology.PeerID, from averaging.Buffer) bool {
	return slices.ContainsFunc(c.out, func(f flight) bool { return f.peer == peer && f.transfer.From == from })
}

// takingFrom tells whether an inbound flight of a peer is not over.
func (c *core) takingFrom(peer topology.PeerID) bool {
	return slices.ContainsFunc(c.in, func(f flight) bool { return f.peer == peer })
}

// taking tells whether an event is of an inbound flight that is not over.
func (c *core) taking(e averaging.Event) bool {
	return slices.ContainsFunc(c.in, func(f flight) bool { return f.id == e.Exchange && f.peer == e.Peer })
}

// stuck is an outbound flight that has lasted for the deadline.
func (c *core) stuck() (flight, bool) {
	for _, f := range c.out {
		if c.now-f.began >= c.config.Deadline {
			return f, true
		}
	}
	return flight{}, false
}

// arm sets the timer while there is something to wait for, if it is not set.
func (c *core) arm(needed bool, after time.Duration) {
	if !needed || c.tick != 0 {
		return
	}
	c.ticks++
	c.tick = c.ticks
	c.do(averaging.Action{Kind: averaging.SetTimer, Timer: averaging.RoundDeadline, Exchange: c.tick, After: after})
}

// ticked tells whether an event is the timer that was set.
func (c *core) ticked(e averaging.Event) bool {
	if e.Timer != averaging.RoundDeadline || e.Exchange != c.tick || c.tick == 0 {
		return false
	}
	c.tick = 0
	return true
}

// proceed lets the trainer go on.
func (c *core) proceed() {
	if c.waiting {
		c.waiting = false
		c.speed.began(c.now)
		c.do(averaging.Action{Kind: averaging.Proceed})
	}
}

func (c *core) halt(why averaging.Reason) {
	if c.waiting {
		c.waiting = false
		c.do(averaging.Action{Kind: averaging.Halt, Reason: why})
	}
}

// settle says, once, that the run is over here.
func (c *core) settle() {
	if !c.settled {
		c.settled = true
		c.do(averaging.Action{Kind: averaging.Settled})
	}
}
