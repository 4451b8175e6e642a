package peer

import (
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/topology"
)

// maxNotices bounds the events that wait for the loop; whoever reports one more
// waits for room.
const maxNotices = 64

// notice is an event for the machine, with what the loop needs to carry out the
// answer.
type notice struct {
	event averaging.Event
	// proposed and verdict come with Proposed: the exchange, and where its handler
	// waits to hear Accept or Refuse.
	proposed *tracked
	verdict  chan<- averaging.Action
	// joined comes without an event: a member has let this peer in, and may know
	// of an earlier life of it.
	joined bool
	// doubts comes without an event: there are more or fewer exchanges in doubt.
	doubts bool
	// found comes without an event: whether a member that gossip calls dead answers.
	found *finding
	// corrected comes without an event: a member has handed out a record that says
	// more than was known.
	corrected bool
}

// exchangeKey names an exchange among all that a peer takes part in.
type exchangeKey struct {
	peer    topology.PeerID
	id      averaging.ExchangeID
	inbound bool
}

func keyOf(e averaging.Event) exchangeKey { return exchangeKey{e.Peer, e.Exchange, e.Inbound} }

// loop owns the machine and everything that belongs to its decisions. It is the
// only goroutine that touches them: events come in through the peer's notices,
// timers and membership, actions go out to the trainer and to exchanges.
type loop struct {
	peer    *Peer
	machine averaging.Machine
	log     *zap.Logger

	record    seam.Record // as last announced
	announced time.Time   // when that was
	digest    uint64      // of the view that the machine knows
	role      topology.Role
	settled   bool
	flown     bool
	leaving   bool
	told      bool // members have heard of this life
	continued bool // it has gone on under another incarnation

	anchors    anchors
	memory     memory
	algorithm  averaging.Algorithm
	mismatches mismatches

	suspects map[seam.PeerID]*suspect

	unresolved int            // exchanges in doubt, as the machine was last told
	pace       averaging.Pace // as the machine has it

	running map[exchangeKey]*tracked
	timers  [averaging.TimerKinds]setTimer
	wake    *time.Timer
	tick    *time.Ticker
	events  []notice           // waiting to be handled, the oldest first
	actions []averaging.Action // scratch
}

// setTimer is a machine's timer; at is zero if it is not set.
type setTimer struct {
	at     time.Time
	action averaging.Action
}

func newLoop(p *Peer, machine averaging.Machine) *loop {
	l := &loop{
		peer: p, machine: machine, log: p.log,
		running: make(map[exchangeKey]*tracked),
		wake:    time.NewTimer(time.Hour),
		tick:    time.NewTicker(p.announceEvery),
		pace:    p.config.Exchange.Pace,

		algorithm: averaging.AlgorithmOf(machine),
	}
	l.record = seam.Record{
		Peer: p.Self(), Run: p.config.Run, Addresses: p.advertised(), Flags: p.resumedFlag() | algorithmFlag(averaging.AlgorithmOf(machine)) | p.reach.flag(),
		Steps: p.counters.steps.Load(), Head: p.counters.head.Load(),
	}
	l.anchors, l.memory.past = newAnchors(p.transport), p.readPartners()
	for _, old := range l.memory.past {
		l.anchors.good = append(l.anchors.good, topology.PeerID(old.id))
	}
	return l
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
		case <-l.tick.C:
			l.repair(time.Now())
			if l.role == topology.Undecided || l.inQuestion(time.Now()) {
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
		l.actions = l.machine.Handle(time.Since(l.peer.started), n.event, l.actions[:0])
		l.peer.batch.take() // before the trainer may go on
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
	delete(l.running, keyOf(n.event))
	n.verdict <- averaging.Action{Kind: averaging.Refuse, Reason: averaging.Round} // has room
	n.verdict = nil
}

// begin keeps account of the exchanges in flight. It reports false if there is
// nothing in a notice for the machine.
func (l *loop) begin(n notice) bool {
	if n.joined {
		if err := l.announce(); err != nil {
			l.log.Debug("announcing this peer to those it has joined", zap.Error(err))
		}
	}
	if n.joined || n.corrected {
		l.refresh()
		return false
	}
	if n.found != nil {
		l.found(*n.found)
		return false
	}
	if n.doubts {
		l.doubts()
		return false
	}
	switch n.event.Kind {
	case averaging.Proposed, averaging.Offered:
		key := keyOf(n.event)
		if _, twice := l.running[key]; twice {
			n.verdict <- averaging.Action{Kind: averaging.Refuse, Reason: averaging.Busy} // has room
			return false
		}
		l.running[key] = n.proposed
	case averaging.Refused, averaging.Finished, averaging.Failed:
		if n.event.Kind == averaging.Finished {
			l.proved(n.event.Peer)
		}
		delete(l.running, keyOf(n.event))
	}
	return true
}

func (l *loop) carryOut(action averaging.Action, cause *notice) {
	key := exchangeKey{action.Peer, action.Exchange, action.Inbound}
	switch action.Kind {
	case averaging.Proceed:
		select {
		case l.peer.proceed <- struct{}{}:
		default: // a machine that says it twice for one step
		}
	case averaging.Propose:
		l.propose(action, key)
	case averaging.Accept, averaging.Refuse:
		if cause.verdict == nil || key != keyOf(cause.event) {
			return // the machine answers what was not asked, or twice
		}
		if action.Kind == averaging.Refuse {
			delete(l.running, key)
		}
		cause.verdict <- action // has room
		cause.verdict = nil
	case averaging.Abort:
		if x, ok := l.running[key]; ok {
			l.abort(x)
			delete(l.running, key)
		}
	case averaging.SetTimer:
		l.timers[action.Timer] = setTimer{at: time.Now().Add(action.After), action: action}
	case averaging.Settled:
		l.settled = true
		l.peer.final.settle()
		l.refresh()
	case averaging.Halt:
		select {
		case l.peer.halts <- action.Reason:
		default: // the trainer has not heard of the last one
		}
	default:
		l.carry(action, key)
	}
}

// abort breaks an exchange off without waiting for it: resetting a stream can take as
// long as its connection hangs. What it sends changes no buffer from now on, since the
// machine's next action may fill them.
func (l *loop) abort(x *tracked) {
	x.stopped.Store(true)
	if !l.peer.transfers.spawn(func() { x.breakOff(errAborted) }) {
		x.breakOff(errAborted) // the peer is closing, and this is what it waits for
	}
}

// propose starts an outbound exchange, unless the peer is closing or has no model
// to share yet.
func (l *loop) propose(action averaging.Action, key exchangeKey) {
	x, overlap := newTracked(averaging.Event{Peer: action.Peer, Exchange: action.Exchange}), action.Overlap
	if l.peer.arrival.open() && !l.peer.isClosing() && l.peer.transfers.spawn(func() { l.peer.initiate(x, overlap) }) {
		l.running[key] = x
		return
	}
	l.events = append(l.events, notice{event: averaging.Event{
		Kind: averaging.Refused, Peer: action.Peer, Exchange: action.Exchange, Reason: averaging.Closing,
	}})
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
		l.events = append(l.events, notice{event: averaging.Event{
			Kind: averaging.TimerFired, Timer: timer.action.Timer, Peer: timer.action.Peer, Exchange: timer.action.Exchange,
		}})
		timer.at = time.Time{}
	}
}

// leave breaks off what is left and says goodbye.
func (l *loop) leave() {
	for _, x := range l.running {
		x.breakOff(errAborted)
	}
	l.leaving = true
	l.remember(time.Now(), l.peer.guard.members(l.peer.membership.Members()))
	l.record.Flags |= flagLeaving
	if err := l.announce(); err != nil {
		l.log.Debug("announcing that this peer leaves", zap.Error(err))
	}
}

// notify reports an event to the loop, waiting for room if need be. It reports
// false if the peer has stopped.
func (p *Peer) notify(n notice) bool {
	select {
	case p.notices <- n:
		return true
	case <-p.running.Done():
		return false
	}
}
