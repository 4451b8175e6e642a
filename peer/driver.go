package peer

import (
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/sumtalks"
	"github.com/seed-97356399/murmuration/internal/talks"
)

// driver has a trainer's machine decide, and carries out what it says. The loop of the node owns it.
type driver struct {
	of      *Trainer
	node    *Node
	machine collective.Machine
	log     *zap.Logger
	refresh func() // takes the membership as it is now

	unresolved int            // exchanges in doubt, as the machine was last told
	pace       averaging.Pace // as the machine has it

	running map[talks.Key]*talks.Ongoing
	timers  [collective.TimerKinds]setTimer
	events  []notice            // waiting to be handled, the oldest first
	actions []collective.Action // scratch
}

// setTimer is a machine's timer; at is zero if it is not set.
type setTimer struct {
	at     time.Time
	action averaging.Action
}

func newDriver(t *Trainer, machine collective.Machine) *driver {
	return &driver{
		of: t, node: t.node, machine: machine, log: t.log, refresh: t.node.loop.refresh,
		running: make(map[talks.Key]*talks.Ongoing), pace: t.with.Exchange.Pace,
	}
}

// tell has the machine hear of an event after those before.
func (d *driver) tell(e averaging.Event) { d.events = append(d.events, news(e)) }

// handleAll gives the waiting events to the machine and carries its actions out;
// an action may bring up further events.
func (d *driver) handleAll() {
	for len(d.events) > 0 {
		n := d.events[0]
		d.events = d.events[:copy(d.events, d.events[1:])]
		if !d.begin(n) {
			continue
		}
		d.actions = d.machine.Decide(d.of.life.Now(), n.event, d.actions[:0])
		for _, action := range d.actions {
			d.carryOut(action, &n)
		}
		d.unanswered(&n)
	}
}

// unanswered declines what the machine has left without an answer, as one does that
// knows no such request: whoever has sent it would wait for ever, and this peer with it.
func (d *driver) unanswered(n *notice) {
	if n.verdict == nil {
		return
	}
	delete(d.running, talks.KeyOf(n.event))
	n.decline(averaging.Round)
}

// begin keeps account of the exchanges in flight. It reports false if there is
// nothing in a notice for the machine.
func (d *driver) begin(n notice) bool {
	switch n.event.Kind {
	case averaging.Proposed, collective.Offered:
		key := talks.KeyOf(n.event)
		if _, twice := d.running[key]; twice {
			n.decline(averaging.Busy)
			return false
		}
		d.running[key] = n.proposed
	case averaging.Refused, averaging.Finished, averaging.Failed:
		if n.event.Kind == averaging.Finished {
			d.node.loop.proved(n.event.Peer)
		}
		delete(d.running, talks.KeyOf(n.event))
	}
	return true
}

func (d *driver) carryOut(action collective.Action, cause *notice) {
	key := talks.Key{Peer: action.Peer, Exchange: action.Exchange, Inbound: action.Inbound}
	switch action.Kind {
	case averaging.Proceed:
		d.of.steps.batch.Store(int64(action.Batch))
		select {
		case d.of.steps.proceed <- struct{}{}:
		default: // a machine that says it twice for one step
		}
	case averaging.Propose:
		x, begun := d.of.talks.Propose(action.Action)
		d.started(action, key, x, begun)
	case averaging.Accept, averaging.Refuse:
		if cause.verdict == nil || key != talks.KeyOf(cause.event) {
			return // the machine answers what was not asked, or twice
		}
		if action.Kind == averaging.Refuse {
			delete(d.running, key)
		}
		cause.verdict <- action.Action // has room
		cause.verdict = nil
	case averaging.Abort:
		if x, ok := d.running[key]; ok {
			d.of.talks.Abort(x)
			delete(d.running, key)
		}
	case averaging.SetTimer:
		d.timers[action.Timer] = setTimer{at: time.Now().Add(action.After), action: action.Action}
	case averaging.Settled:
		d.node.flock.Settle()
		d.refresh()
	case averaging.Halt:
		select {
		case d.of.steps.halts <- action.Reason:
		default: // the trainer has not heard of the last one
		}
	default:
		d.carryOutCollective(action, key)
	}
}

// carryOutCollective is carryOut for what only the algorithms in lock-step and those with a
// server ask for. docs/design/020 says how.
func (d *driver) carryOutCollective(action collective.Action, key talks.Key) {
	t, averages, pools := d.of, d.of.steps.updates != nil, d.of.steps.pools
	switch kind := action.Kind; {
	case kind == collective.Tell:
		t.talks.Tell(action)
	case kind == collective.Note:
		sumtalks.Log(d.log, *action.Fact)
	case kind == collective.Send:
		x, begun := t.talks.Send(action)
		d.started(action, key, x, begun)
	case kind == collective.Pool && pools:
		t.replica.Pool(action.Weight)
	case kind == collective.Adopt && pools:
		t.replica.Adopt()
		d.events = append(d.events, news(averaging.Event{Kind: collective.Updated}))
	case kind == collective.Load && averages:
		if err := t.replica.Load(action.Add); err != nil {
			t.steps.updates.fault(leftOut(err))
		}
	case kind == collective.Clear && averages:
		t.replica.Clear()
	case kind == collective.Update && averages:
		t.steps.updates.begin(t, action)
	default:
		d.log.Error("a machine asks for what this release does not know, or needs buffers that there are not: it is left undone", zap.Stringer("action", action))
	}
}

// started keeps account of an exchange or a transfer that this peer has begun, and tells the
// machine of one that it has not: the peer is closing, or has no model to share yet.
func (d *driver) started(action collective.Action, key talks.Key, x *talks.Ongoing, begun bool) {
	if begun {
		d.running[key] = x
		return
	}
	d.events = append(d.events, notice{event: collective.Event{Transfer: action.Transfer, Event: averaging.Event{
		Kind: averaging.Refused, Peer: action.Peer, Exchange: action.Exchange, Reason: averaging.Closing,
	}}})
}

// doubts tells the machine how many exchanges are in doubt, if that has changed.
func (d *driver) doubts() {
	if n := d.of.talks.Unresolved(); n != d.unresolved {
		d.unresolved = n
		d.events = append(d.events, news(averaging.Event{Kind: averaging.Doubt, Unresolved: n}))
	}
}

// next is when the earliest timer is to fire; zero if none is set.
func (d *driver) next() (at time.Time) {
	for _, timer := range d.timers {
		if !timer.at.IsZero() && (at.IsZero() || timer.at.Before(at)) {
			at = timer.at
		}
	}
	return at
}

// fire reports the timers that have run out.
func (d *driver) fire(now time.Time) {
	for kind := range d.timers {
		timer := &d.timers[kind]
		if timer.at.IsZero() || timer.at.After(now) {
			continue
		}
		d.events = append(d.events, news(averaging.Event{
			Kind: averaging.TimerFired, Timer: timer.action.Timer, Peer: timer.action.Peer, Exchange: timer.action.Exchange,
		}))
		timer.at = time.Time{}
	}
}

// tick sees to what comes with time: doubts, pace, and whether the flock has done its work.
func (d *driver) tick() {
	d.of.talks.Repair(time.Now())
	d.doubts()
}

// progress tells the machine when the flock has done its work.
func (d *driver) progress() {
	d.changePace()
	if paced := d.machine.Traits().Pace; paced != nil {
		d.node.tally.Paced(paced.Every())
	}
	if d.of.newcomer.Open() && d.of.work.finished() && d.of.work.conclude() {
		d.tell(averaging.Event{Kind: averaging.RunOver})
	}
}

// end breaks off what is left.
func (d *driver) end() {
	for _, x := range d.running {
		x.Abandon()
	}
}

// changePace gives the machine the pace that holds now, if it can be given one.
func (d *driver) changePace() {
	pace := d.node.orders.At(d.node.flock.Total()).Pace
	if pace == d.pace {
		return
	}
	d.pace = pace
	paced := d.machine.Traits().Pace
	if paced == nil {
		d.log.Warn("the operator sets another pace, which this machine does not take")
		return
	}
	if err := paced.SetPace(pace); err != nil {
		d.log.Warn("the operator sets a pace that cannot be", zap.Error(err))
	}
}
