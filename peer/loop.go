package peer

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/conversations"
	"github.com/seed-97356399/murmuration/internal/counters"
	"github.com/seed-97356399/murmuration/internal/orders"
	"github.com/seed-97356399/murmuration/internal/presence"
	"github.com/seed-97356399/murmuration/internal/sumnet"
	"github.com/seed-97356399/murmuration/internal/tasks"
)

// maxNotices bounds the events that wait for the loop; the sender of one more waits for
// room.
const maxNotices = 64

// notice is news for the loop: an event for the machine of the trainer, or one of the fields below it.
type notice struct {
	question
	// doubts: there are more or fewer exchanges in doubt.
	doubts bool
	// joined: a member has admitted this one, and may know a record of an earlier life of it.
	joined bool
	// corrected: a member has sent a record of this peer that is newer than the one known here.
	corrected bool
	// begins and ends hold the driver of a trainer that begins or ends. The channel done is closed when that has
	// happened, or look has returned.
	begins, ends *driver
	// look is called by the loop, which owns the machine.
	look func()
	done chan<- struct{}
}

// inbox receives notices for a node's loop. Safe for concurrent use; a sender waits if there is no room.
type inbox struct {
	notices chan notice
	running context.Context // while it lasts, the loop reads notices
}

func newInbox(running context.Context) *inbox {
	return &inbox{notices: make(chan notice, maxNotices), running: running}
}

// put sends a notice, and returns false if the node has stopped.
func (i *inbox) put(n notice) bool {
	select {
	case i.notices <- n:
		return true
	case <-i.running.Done():
		return false
	}
}

// await is put, and waits until the loop has handled the notice.
func (i *inbox) await(n notice) bool {
	done := make(chan struct{})
	if n.done = done; !i.put(n) {
		return false
	}
	select {
	case <-done:
		return true
	case <-i.running.Done():
		return false
	}
}

// Look implements pushpull.Loop.
func (i *inbox) Look(look func()) bool { return i.await(notice{look: look}) }

// Event, Ask, Doubts and Corrected implement conversations.Loop, Joined arrival.Loop.
func (i *inbox) Event(e collective.Event) bool { return i.put(notice{question: question{event: e}}) }

func (i *inbox) Ask(e collective.Event, x *conversations.Ongoing, verdict chan<- averaging.Action) bool {
	return i.put(notice{question: question{event: e, proposed: x, verdict: verdict}})
}

func (i *inbox) Doubts()    { i.put(notice{doubts: true}) }
func (i *inbox) Corrected() { i.put(notice{corrected: true}) }
func (i *inbox) Joined()    { i.put(notice{joined: true}) }

// loop owns this member's place among the others, and the machine of its trainer while it has one. It is the
// only goroutine that touches them: events come in as notices and from timers and membership, actions go
// out to the trainer and to exchanges.
type loop struct {
	inbox    *inbox
	net      *adapters
	arrival  *arrival.Arrival
	presence *presence.Presence
	memory   *arrival.Memory
	sums     *sumnet.Net
	orders   *orders.Orders
	counters *counters.Counters
	life     *tasks.Life // of the node
	log      *zap.Logger

	driver *driver // nil while nobody trains
	wake   *time.Timer
	tick   *time.Ticker
}

// run handles events until the node stops.
func (l *loop) run() {
	l.wake, l.tick = time.NewTimer(time.Hour), time.NewTicker(presence.TickEvery)
	defer l.tick.Stop()
	defer l.wake.Stop()
	l.refresh()
	for {
		l.drive()
		select {
		case <-l.life.Running.Done():
			l.leave()
			return
		case n := <-l.inbox.notices:
			l.handle(n)
		case <-l.wake.C:
			if l.driver != nil {
				l.driver.fire(time.Now())
			}
		case <-l.net.membership.Changed():
			l.refresh()
		case finding := <-l.presence.Findings():
			if l.presence.Found(finding, time.Now()) {
				l.tell(averaging.Event{Kind: averaging.PeerLost, Peer: finding.Member})
				l.refresh()
			}
		case <-l.tick.C:
			if l.driver != nil {
				l.driver.tick()
			}
			if l.presence.Due(time.Now()) {
				l.refresh() // members that do not answer may be due to be dropped
			}
			l.progress()
		}
	}
}

// drive lets the machine handle the waiting events, and sets the wake-up to its earliest timer.
func (l *loop) drive() {
	if l.driver == nil {
		return
	}
	for l.driver.handle() {
		l.refresh()
	}
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
	case n.look != nil:
		n.look()
		close(n.done)
	case n.joined, n.corrected:
		if n.joined {
			if err := l.presence.Announce(time.Now()); err != nil {
				l.log.Debug("announcing this peer to those it has joined", zap.Error(err))
				l.barIf(err)
			}
		}
		l.refresh()
	case l.driver == nil:
		n.decline(averaging.Closing)
	case n.doubts:
		l.driver.doubts()
	default:
		l.driver.events = append(l.driver.events, n.question)
	}
}

// take gives events to the machine of this trainer from now on.
func (l *loop) take(d *driver) {
	d.enrol()
	l.driver = d
}

// part undoes take. If the node leaves with its trainer, its record says until the end that it trains.
func (l *loop) part(d *driver) {
	if l.driver != d {
		return
	}
	d.end()
	l.driver = nil
	if !l.life.Leaving.Load() {
		l.orders.Rest()
		l.presence.Rest()
		l.refresh()
	}
}

// leave announces the departure.
func (l *loop) leave() {
	l.memory.Write(time.Now(), l.net.guard.Members(l.net.membership.Members()), l.presence.Good(), true)
	l.presence.Leave(time.Now())
}

// refresh reads the current membership, and tells the machine if links may have changed.
func (l *loop) refresh() {
	members, overlay, err := l.presence.Refresh(time.Now())
	l.barIf(err)
	if overlay != nil {
		l.tell(averaging.Event{Kind: averaging.ViewChanged, Overlay: overlay})
	}
	l.arrival.MembersChanged()
	l.sums.MembersChanged()
	l.memory.Write(time.Now(), members, l.presence.Good(), false)
	l.progress()
}

// barIf bars the node from its run for good if members will accept no further record of it.
func (l *loop) barIf(err error) {
	if errors.Is(err, presence.ErrIdentity) {
		l.arrival.Bar(err)
	}
}

// progress announces what has changed since the last announcement, and tells the
// machine when the flock has done its work.
func (l *loop) progress() {
	l.counters.Connected(l.net.transport.Connections())
	target := uint64(0)
	if l.driver != nil {
		l.driver.progress()
		target = l.driver.steps.work.target()
	}
	l.barIf(l.presence.Publish(time.Now(), target))
}
