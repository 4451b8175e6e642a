package peer

import (
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/conversations"
	"github.com/seed-97356399/murmuration/internal/orders"
	"github.com/seed-97356399/murmuration/internal/presence"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sumnet"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/topology"
)

// question is an event for a machine, with what is needed to carry out the answer.
type question struct {
	event collective.Event
	// proposed and verdict come with Proposed: the exchange, and the channel on which its
	// handler waits for Accept or Refuse.
	proposed *conversations.Ongoing
	verdict  chan<- averaging.Action
}

// news asks the machine about an event of exchanges.
func news(e averaging.Event) question { return question{event: collective.Event{Event: e}} }

// decline answers a proposal.
func (q *question) decline(why averaging.Reason) {
	if q.verdict != nil {
		q.verdict <- averaging.Action{Kind: averaging.Refuse, Reason: why} // has room
		q.verdict = nil
	}
}

// driver gives events to a trainer's machine and carries out its actions. The loop of the node owns the driver.
type driver struct {
	entry         entry
	machine       collective.Machine
	replica       *replica.Replica
	steps         *training
	conversations *conversations.Conversations
	presence      *presence.Presence // the loop's, as the memory is
	memory        *arrival.Memory
	life          *tasks.Life // of the trainer
	log           *zap.Logger

	unresolved int            // exchanges in doubt, as last reported to the machine
	pace       averaging.Pace // as last reported to the machine
	settled    bool           // nothing is left to do; not yet reported to the others

	running map[conversations.Key]*conversations.Ongoing
	timers  [collective.TimerKinds]setTimer
	events  []question          // waiting to be handled, the oldest first
	actions []collective.Action // scratch
}

// entry is what a node receives when it begins to train.
type entry struct {
	after     behind
	shape     topology.Shape
	begun     orders.Course
	listener  orders.Listener
	described *arrival.Described
}

// setTimer is a machine's timer; at is zero if it is not set.
type setTimer struct {
	at     time.Time
	action averaging.Action
}

// enrol announces that the node trains.
func (d *driver) enrol() {
	w, e := d.steps.work, d.entry
	if w.flock.Steps() == 0 {
		e.after.resume(w.flock)
	}
	e.described.Recall(e.after.Description)
	w.orders.Train(e.begun, e.listener)
	w.orders.Recall(e.after.Orders)
	traits := d.machine.Traits()
	d.presence.Train(traits.Algorithm, traits.ServesOnly, e.shape, e.after.Incarnation)
}

// tell queues an event for the machine.
func (d *driver) tell(e averaging.Event) { d.events = append(d.events, news(e)) }

// handle gives the waiting events to the machine and carries its actions out; an action may bring up further
// events. It returns true, before it has handled all, when the machine has just settled.
func (d *driver) handle() (settled bool) {
	for len(d.events) > 0 && !d.settled {
		q := d.events[0]
		d.events = d.events[:copy(d.events, d.events[1:])]
		if !d.begin(q) {
			continue
		}
		d.actions = d.machine.Decide(d.life.Now(), q.event, d.actions[:0])
		for _, action := range d.actions {
			d.carryOut(action, &q)
		}
		d.unanswered(&q)
	}
	settled, d.settled = d.settled, false
	return settled
}

// unanswered declines a request that the machine has not answered, for example because it
// does not know that kind: without an answer the sender and this peer would wait for ever.
func (d *driver) unanswered(q *question) {
	if q.verdict == nil {
		return
	}
	delete(d.running, conversations.KeyOf(q.event))
	q.decline(averaging.Round)
}

// begin records the exchanges in flight. It returns false if the question holds no event
// for the machine.
func (d *driver) begin(q question) bool {
	switch q.event.Kind {
	case averaging.Proposed, collective.Offered:
		key := conversations.KeyOf(q.event)
		if _, twice := d.running[key]; twice {
			q.decline(averaging.Busy)
			return false
		}
		d.running[key] = q.proposed
	case averaging.Refused, averaging.Finished, averaging.Failed:
		if q.event.Kind == averaging.Finished {
			d.memory.Proved(d.presence.Proved(q.event.Peer))
		}
		delete(d.running, conversations.KeyOf(q.event))
	}
	return true
}

func (d *driver) carryOut(action collective.Action, cause *question) {
	key := conversations.Key{Peer: action.Peer, Exchange: action.Exchange, Inbound: action.Inbound}
	switch action.Kind {
	case averaging.Proceed:
		d.steps.goOn(action.Batch, action.Version)
	case averaging.Propose:
		x, begun := d.conversations.Propose(action.Action)
		d.started(action, key, x, begun)
	case averaging.Accept, averaging.Refuse:
		if cause.verdict == nil || key != conversations.KeyOf(cause.event) {
			return // nobody asked, or the machine has answered twice
		}
		if action.Kind == averaging.Refuse {
			delete(d.running, key)
		}
		cause.verdict <- action.Action // has room
		cause.verdict = nil
	case averaging.Abort:
		if x, ok := d.running[key]; ok {
			d.conversations.Abort(x)
			delete(d.running, key)
		}
	case averaging.SetTimer:
		d.timers[action.Timer] = setTimer{at: time.Now().Add(action.After), action: action.Action}
	case averaging.Settled:
		d.steps.work.flock.Settle()
		d.settled = true
	case averaging.Halt:
		d.steps.halt(action.Reason)
	default:
		d.carryOutCollective(action, key)
	}
}

// carryOutCollective is carryOut for the actions of algorithms in lock-step and of those
// with a server. See docs/design/020.
func (d *driver) carryOutCollective(action collective.Action, key conversations.Key) {
	averages, pools := d.steps.updates != nil, d.steps.traits.Pools
	switch kind := action.Kind; {
	case kind == collective.Tell:
		d.conversations.Tell(action)
	case kind == collective.Note:
		sumnet.Log(d.log, *action.Fact)
	case kind == collective.Send:
		x, begun := d.conversations.Send(action)
		d.started(action, key, x, begun)
	case kind == collective.Commit:
		d.replica.Commit()
	case kind == collective.Pool && pools:
		d.replica.Pool(action.Weight)
	case kind == collective.Adopt && pools:
		d.replica.Adopt()
		d.events = append(d.events, news(averaging.Event{Kind: collective.Updated}))
	case kind == collective.Load && averages:
		if err := d.replica.Load(action.Transfer.Part, action.Transfer.Parts, action.Add, action.Forget); err != nil {
			d.steps.Unfit(err)
		}
	case kind == collective.Clear && averages:
		d.replica.Clear(action.Transfer.Part, action.Transfer.Parts)
	case kind == collective.Update && averages:
		d.steps.updates.begin(action)
	default:
		d.log.Error("a machine asks for what this release does not know, or needs buffers that there are not: it is left undone", zap.Stringer("action", action))
	}
}

// started records an exchange or a transfer that this peer has begun. One that it could not
// begin, because it is closing or has no model to share yet, is reported to the machine.
func (d *driver) started(action collective.Action, key conversations.Key, x *conversations.Ongoing, begun bool) {
	if begun {
		d.running[key] = x
		return
	}
	d.events = append(d.events, question{event: collective.Event{Transfer: action.Transfer, Event: averaging.Event{
		Kind: averaging.Refused, Peer: action.Peer, Exchange: action.Exchange, Reason: averaging.Closing,
	}}})
}

// doubts tells the machine how many exchanges are in doubt, if that has changed.
func (d *driver) doubts() {
	if n := d.conversations.Unresolved(); n != d.unresolved {
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

// tick does what depends on time: doubts, pace, and whether the flock has done its work.
func (d *driver) tick() {
	d.conversations.Repair(time.Now())
	d.doubts()
}

// progress tells the machine when the flock has done its work.
func (d *driver) progress() {
	d.changePace()
	if paced := d.machine.Traits().Pace; paced != nil {
		d.steps.counters.Paced(paced.Every())
	}
	if d.steps.arrival.Open() && d.steps.work.finished() && d.steps.conclude() {
		d.tell(averaging.Event{Kind: averaging.RunOver})
	}
}

// end breaks off what is left.
func (d *driver) end() {
	for _, x := range d.running {
		x.Abandon()
	}
}

// changePace gives the machine the current pace, if the machine accepts one.
func (d *driver) changePace() {
	w := d.steps.work
	pace := w.orders.At(w.flock.Total()).Pace
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
