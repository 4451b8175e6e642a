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
	"github.com/seed-97356399/murmuration/peer/seam"
)

// maxNotices bounds the events that wait for the loop; whoever reports one more
// waits for room.
const maxNotices = 64

// notice is news for the loop: an event for the machine of the trainer, with what is needed to
// carry out the answer, or one of what follows it.
type notice struct {
	event collective.Event
	// proposed and verdict come with Proposed: the exchange, and where its handler
	// waits to hear Accept or Refuse.
	proposed *talks.Ongoing
	verdict  chan<- averaging.Action
	// doubts: there are more or fewer exchanges in doubt.
	doubts bool
	// joined: a member has let this one in, and may know of an earlier life of it.
	joined bool
	// corrected: a member has handed out a record that says more than was known.
	corrected bool
	// begins and ends: a trainer does, of which done is closed when it has.
	begins, ends *Trainer
	done         chan<- struct{}
}

// news is the notice of an event of exchanges.
func news(e averaging.Event) notice { return notice{event: collective.Event{Event: e}} }

// decline answers a proposal.
func (n *notice) decline(why averaging.Reason) {
	if n.verdict != nil {
		n.verdict <- averaging.Action{Kind: averaging.Refuse, Reason: why} // has room
		n.verdict = nil
	}
}

// loop owns this member's place among the others, and the machine of its trainer while it has one. It is the
// only goroutine that touches them: events come in as notices and from timers and membership, actions go
// out to the trainer and to exchanges.
type loop struct {
	node    *Node
	notices chan notice
	roster  *roster.Roster
	memory  *arrival.Memory
	driver  *driver // nil while nobody trains
	wake    *time.Timer
	tick    *time.Ticker
}

func newLoop(n *Node, memory *arrival.Memory) *loop {
	return &loop{
		node: n, notices: make(chan notice, maxNotices), roster: n.roster, memory: memory,
		wake: time.NewTimer(time.Hour), tick: time.NewTicker(roster.TickEvery),
	}
}

// run handles events until the node stops.
func (l *loop) run() {
	defer l.tick.Stop()
	defer l.wake.Stop()
	l.refresh()
	for {
		l.drive()
		select {
		case <-l.node.life.Running.Done():
			l.leave()
			return
		case n := <-l.notices:
			l.handle(n)
		case <-l.wake.C:
			if l.driver != nil {
				l.driver.fire(time.Now())
			}
		case <-l.node.net.membership.Changed():
			l.refresh()
		case finding := <-l.roster.Findings():
			if l.roster.Found(finding, time.Now()) {
				l.tell(averaging.Event{Kind: averaging.PeerLost, Peer: finding.Member})
				l.refresh()
			}
		case <-l.tick.C:
			if l.driver != nil {
				l.driver.tick()
			}
			if l.roster.Due(time.Now()) {
				l.refresh() // it may be time to go without those who do not answer
			}
			l.progress()
		}
	}
}

// drive has the machine handle what there is, and sets the wake-up to its earliest timer.
func (l *loop) drive() {
	if l.driver == nil {
		return
	}
	l.driver.handleAll()
	if next := l.driver.next(); next.IsZero() {
		l.wake.Stop()
	} else {
		l.wake.Reset(time.Until(next))
	}
}

// tell tells the machine, if there is one.
func (l *loop) tell(e averaging.Event) {
	if l.driver != nil {
		l.driver.tell(e)
	}
}

// handle takes a notice, in its turn after those for the machine.
func (l *loop) handle(n notice) {
	switch {
	case n.begins != nil:
		l.take(n.begins)
		l.refresh()
		close(n.done)
	case n.ends != nil:
		l.part(n.ends)
		close(n.done)
	case n.joined, n.corrected:
		if n.joined {
			if err := l.roster.Announce(time.Now()); err != nil {
				l.node.log.Debug("announcing this peer to those it has joined", zap.Error(err))
				l.barIf(err)
			}
		}
		l.refresh()
	case l.driver == nil:
		n.decline(averaging.Closing)
	case n.doubts:
		l.driver.doubts()
	default:
		l.driver.events = append(l.driver.events, n)
	}
}

// take has a trainer's machine decide from now on.
func (l *loop) take(t *Trainer) {
	t.enrol()
	l.driver = t.driver
}

// part ends that. Where the node leaves with its trainer, it is known to train to the end.
func (l *loop) part(t *Trainer) {
	if l.driver != t.driver {
		return
	}
	l.driver.end()
	l.driver = nil
	if !l.node.life.Leaving.Load() {
		l.roster.Rest()
		l.refresh()
	}
}

// proved notes an exchange with a partner that went well.
func (l *loop) proved(partner seam.PeerID) { l.memory.Proved(l.roster.Proved(partner)) }

// leave says goodbye.
func (l *loop) leave() {
	l.memory.Write(time.Now(), l.node.net.guard.Members(l.node.net.membership.Members()), l.roster.Good(), true)
	l.roster.Leave(time.Now())
}

// refresh takes the membership as it is now, and tells the machine if links may differ.
func (l *loop) refresh() {
	members, overlay, err := l.roster.Refresh(time.Now())
	l.barIf(err)
	if overlay != nil {
		l.tell(averaging.Event{Kind: averaging.ViewChanged, Overlay: overlay})
	}
	if t := l.node.trainer.Load(); t != nil {
		t.newcomer.MembersChanged()
	}
	l.node.sums.talks.MembersChanged()
	l.memory.Write(time.Now(), members, l.roster.Good(), false)
	l.progress()
}

// barIf keeps the node from its run for good if no record of it will be believed.
func (l *loop) barIf(err error) {
	if errors.Is(err, roster.ErrIdentity) {
		l.node.arrival.Bar(err)
	}
}

// progress announces what has changed since the last announcement, and tells the
// machine when the flock has done its work.
func (l *loop) progress() {
	l.node.tally.Connected(l.node.net.transport.Connections())
	if l.driver != nil {
		l.driver.progress()
	}
	l.barIf(l.roster.Publish(time.Now()))
}
