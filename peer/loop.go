package peer

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/roster"
	"github.com/seed-97356399/murmuration/internal/talks"
)

// maxNotices bounds the events that wait for the loop; whoever reports one more
// waits for room.
const maxNotices = 64

// notice is an event for the machine, with what the loop needs to carry out the
// answer.
type notice struct {
	event collective.Event
	// proposed and verdict come with Proposed: the exchange, and where its handler
	// waits to hear Accept or Refuse.
	proposed *talks.Ongoing
	verdict  chan<- averaging.Action
	// joined comes without an event: a member has let this peer in, and may know
	// of an earlier life of it.
	joined bool
	// doubts comes without an event: there are more or fewer exchanges in doubt.
	doubts bool
	// corrected comes without an event: a member has handed out a record that says
	// more than was known.
	corrected bool
}

// news is the notice of an event of exchanges.
func news(e averaging.Event) notice { return notice{event: collective.Event{Event: e}} }

// loop owns the machine and everything that belongs to its decisions. It is the
// only goroutine that touches them: events come in through the peer's notices,
// timers and membership, actions go out to the trainer and to exchanges.
type loop struct {
	peer    *Peer
	machine collective.Machine
	log     *zap.Logger

	roster *roster.Roster
	memory *arrival.Memory

	unresolved int            // exchanges in doubt, as the machine was last told
	pace       averaging.Pace // as the machine has it

	running map[talks.Key]*talks.Ongoing
	timers  [collective.TimerKinds]setTimer
	wake    *time.Timer
	tick    *time.Ticker
	events  []notice            // waiting to be handled, the oldest first
	actions []collective.Action // scratch
}

// setTimer is a machine's timer; at is zero if it is not set.
type setTimer struct {
	at     time.Time
	action averaging.Action
}

func newLoop(p *Peer, machine collective.Machine, memory *arrival.Memory) *loop {
	return &loop{
		peer: p, machine: machine, log: p.log, roster: p.roster, memory: memory,
		running: make(map[talks.Key]*talks.Ongoing),
		wake:    time.NewTimer(time.Hour),
		tick:    time.NewTicker(roster.TickEvery),
		pace:    p.config.Exchange.Pace,
	}
}

// run handles events until the peer stops.
func (l *loop) run() {
	defer l.tick.Stop()
	defer l.wake.Stop()
	l.refresh()
	for {
		l.handleAll()
		l.arm()
		select {
		case <-l.peer.running.Done():
			l.leave()
			return
		case n := <-l.peer.notices:
			l.events = append(l.events, n)
		case <-l.wake.C:
			l.fire(time.Now())
		case <-l.peer.membership.Changed():
			l.refresh()
		case finding := <-l.roster.Findings():
			if l.roster.Found(finding, time.Now()) {
				l.events = append(l.events, news(averaging.Event{Kind: averaging.PeerLost, Peer: finding.Member}))
				l.refresh()
			}
		case <-l.tick.C:
			l.peer.talks.Repair(time.Now())
			l.doubts()
			if l.roster.Due(time.Now()) {
				l.refresh() // it may be time to go without those who do not answer
			}
			l.progress()
		}
	}
}

// handleAll gives the waiting events to the machine and carries its actions out;
// an action may bring up further events.
func (l *loop) handleAll() {
	for len(l.events) > 0 {
		n := l.events[0]
		l.events = l.events[:copy(l.events, l.events[1:])]
		if !l.begin(n) {
			continue
		}
		l.actions = l.machine.Decide(time.Since(l.peer.started), n.event, l.actions[:0])
		for _, action := range l.actions {
			l.carryOut(action, &n)
		}
		l.unanswered(&n)
	}
}

// unanswered declines what the machine has left without an answer, as one does that
// knows no such request: whoever has sent it would wait for ever, and this peer with it.
func (l *loop) unanswered(n *notice) {
	if n.verdict == nil {
		return
	}
	delete(l.running, talks.KeyOf(n.event))
	n.verdict <- averaging.Action{Kind: averaging.Refuse, Reason: averaging.Round} // has room
	n.verdict = nil
}

// begin keeps account of the exchanges in flight. It reports false if there is
// nothing in a notice for the machine.
func (l *loop) begin(n notice) bool {
	if n.joined {
		if err := l.roster.Announce(time.Now()); err != nil {
			l.log.Debug("announcing this peer to those it has joined", zap.Error(err))
			l.barIf(err)
		}
	}
	if n.joined || n.corrected {
		l.refresh()
		return false
	}
	if n.doubts {
		l.doubts()
		return false
	}
	switch n.event.Kind {
	case averaging.Proposed, collective.Offered:
		key := talks.KeyOf(n.event)
		if _, twice := l.running[key]; twice {
			n.verdict <- averaging.Action{Kind: averaging.Refuse, Reason: averaging.Busy} // has room
			return false
		}
		l.running[key] = n.proposed
	case averaging.Refused, averaging.Finished, averaging.Failed:
		if n.event.Kind == averaging.Finished {
			l.memory.Proved(l.roster.Proved(n.event.Peer))
		}
		delete(l.running, talks.KeyOf(n.event))
	}
	return true
}

func (l *loop) carryOut(action collective.Action, cause *notice) {
	key := talks.Key{Peer: action.Peer, Exchange: action.Exchange, Inbound: action.Inbound}
	switch action.Kind {
	case averaging.Proceed:
		l.peer.trainer.batch.Store(int64(action.Batch))
		select {
		case l.peer.trainer.proceed <- struct{}{}:
		default: // a machine that says it twice for one step
		}
	case averaging.Propose:
		x, begun := l.peer.talks.Propose(action.Action)
		l.started(action, key, x, begun)
	case averaging.Accept, averaging.Refuse:
		if cause.verdict == nil || key != talks.KeyOf(cause.event) {
			return // the machine answers what was not asked, or twice
		}
		if action.Kind == averaging.Refuse {
			delete(l.running, key)
		}
		cause.verdict <- action.Action // has room
		cause.verdict = nil
	case averaging.Abort:
		if x, ok := l.running[key]; ok {
			l.peer.talks.Abort(x)
			delete(l.running, key)
		}
	case averaging.SetTimer:
		l.timers[action.Timer] = setTimer{at: time.Now().Add(action.After), action: action.Action}
	case averaging.Settled:
		l.peer.flock.Settle()
		l.refresh()
	case averaging.Halt:
		select {
		case l.peer.trainer.halts <- action.Reason:
		default: // the trainer has not heard of the last one
		}
	default:
		l.carryOutCollective(action, key)
	}
}

// carryOutCollective is carryOut for what only the algorithms in lock-step and those with a
// server ask for. docs/design/020 says how.
func (l *loop) carryOutCollective(action collective.Action, key talks.Key) {
	p, averages, pools := l.peer, l.peer.trainer.updates != nil, l.peer.trainer.pools
	switch kind := action.Kind; {
	case kind == collective.Tell:
		p.talks.Tell(action)
	case kind == collective.Send:
		x, begun := p.talks.Send(action)
		l.started(action, key, x, begun)
	case kind == collective.Pool && pools:
		p.replica.Pool(action.Weight)
	case kind == collective.Adopt && pools:
		p.replica.Adopt()
		l.events = append(l.events, news(averaging.Event{Kind: collective.Updated}))
	case kind == collective.Load && averages:
		if err := p.replica.Load(action.Add); err != nil {
			p.trainer.updates.fault(leftOut(err))
		}
	case kind == collective.Clear && averages:
		p.replica.Clear()
	case kind == collective.Update && averages:
		p.trainer.updates.begin(p, action)
	default:
		l.log.Error("a machine asks for what this release does not know, or needs buffers that there are not: it is left undone", zap.Stringer("action", action))
	}
}

// started keeps account of an exchange or a transfer that this peer has begun, and tells the
// machine of one that it has not: the peer is closing, or has no model to share yet.
func (l *loop) started(action collective.Action, key talks.Key, x *talks.Ongoing, begun bool) {
	if begun {
		l.running[key] = x
		return
	}
	l.events = append(l.events, notice{event: collective.Event{Transfer: action.Transfer, Event: averaging.Event{
		Kind: averaging.Refused, Peer: action.Peer, Exchange: action.Exchange, Reason: averaging.Closing,
	}}})
}

// doubts tells the machine how many exchanges are in doubt, if that has changed.
func (l *loop) doubts() {
	if n := l.peer.talks.Unresolved(); n != l.unresolved {
		l.unresolved = n
		l.events = append(l.events, news(averaging.Event{Kind: averaging.Doubt, Unresolved: n}))
	}
}

// arm sets the wake-up to the earliest timer.
func (l *loop) arm() {
	var next time.Time
	for _, timer := range l.timers {
		if !timer.at.IsZero() && (next.IsZero() || timer.at.Before(next)) {
			next = timer.at
		}
	}
	if next.IsZero() {
		l.wake.Stop()
		return
	}
	l.wake.Reset(time.Until(next))
}

// fire reports the timers that have run out.
func (l *loop) fire(now time.Time) {
	for kind := range l.timers {
		timer := &l.timers[kind]
		if timer.at.IsZero() || timer.at.After(now) {
			continue
		}
		l.events = append(l.events, news(averaging.Event{
			Kind: averaging.TimerFired, Timer: timer.action.Timer, Peer: timer.action.Peer, Exchange: timer.action.Exchange,
		}))
		timer.at = time.Time{}
	}
}

// leave breaks off what is left and says goodbye.
func (l *loop) leave() {
	for _, x := range l.running {
		x.Abandon()
	}
	l.memory.Write(time.Now(), l.peer.guard.Members(l.peer.membership.Members()), l.roster.Good(), true)
	l.roster.Leave(time.Now())
}

// refresh takes the membership as it is now, and tells the machine if links may differ.
func (l *loop) refresh() {
	members, overlay, err := l.roster.Refresh(time.Now())
	l.barIf(err)
	if overlay != nil {
		l.events = append(l.events, news(averaging.Event{Kind: averaging.ViewChanged, Overlay: overlay}))
	}
	l.peer.arrival.MembersChanged()
	l.peer.sums.MembersChanged()
	l.memory.Write(time.Now(), members, l.roster.Good(), false)
	l.progress()
}

// barIf keeps the trainer from its work for good if no record of this peer will be believed.
func (l *loop) barIf(err error) {
	if errors.Is(err, roster.ErrIdentity) {
		l.peer.arrival.Bar(err)
	}
}

// progress announces what has changed since the last announcement, and tells the
// machine when the flock has done its work.
func (l *loop) progress() {
	p := l.peer
	p.tally.Connected(p.transport.Connections())
	l.changePace()
	if paced := l.machine.Traits().Pace; paced != nil {
		p.tally.Paced(paced.Every())
	}
	if p.arrival.Open() && p.work.finished() && p.work.conclude() {
		l.events = append(l.events, news(averaging.Event{Kind: averaging.RunOver}))
	}
	l.barIf(l.roster.Publish(time.Now()))
}

// changePace gives the machine the pace that holds now, if it can be given one.
func (l *loop) changePace() {
	pace := l.peer.orders.At(l.peer.flock.Total()).Pace
	if pace == l.pace {
		return
	}
	l.pace = pace
	paced := l.machine.Traits().Pace
	if paced == nil {
		l.log.Warn("the operator sets another pace, which this machine does not take")
		return
	}
	if err := paced.SetPace(pace); err != nil {
		l.log.Warn("the operator sets a pace that cannot be", zap.Error(err))
	}
}
