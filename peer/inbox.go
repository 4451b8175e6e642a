package peer

import (
	"context"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/talks"
)

// maxNotices bounds the events that wait for the loop; whoever reports one more
// waits for room.
const maxNotices = 64

// notice is news for the loop: an event for the machine of the trainer, or one of what follows it.
type notice struct {
	question
	// doubts: there are more or fewer exchanges in doubt.
	doubts bool
	// joined: a member has let this one in, and may know of an earlier life of it.
	joined bool
	// corrected: a member has handed out a record that says more than was known.
	corrected bool
	// begins and ends: a trainer does, whose driver it is, of which done is closed when it has.
	begins, ends *driver
	done         chan<- struct{}
}

// inbox is where a node's loop is told what it is to see to. Safe for concurrent use; it waits for room if need be.
type inbox struct {
	notices chan notice
	running context.Context // as long as it lasts, somebody hears
}

func newInbox(running context.Context) *inbox {
	return &inbox{notices: make(chan notice, maxNotices), running: running}
}

// put reports false if the node has stopped.
func (i *inbox) put(n notice) bool {
	select {
	case i.notices <- n:
		return true
	case <-i.running.Done():
		return false
	}
}

// await is put that waits until the loop has seen to it.
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

// Event implements talks.Loop.
func (i *inbox) Event(e collective.Event) bool { return i.put(notice{question: question{event: e}}) }

// Ask implements talks.Loop.
func (i *inbox) Ask(e collective.Event, x *talks.Ongoing, verdict chan<- averaging.Action) bool {
	return i.put(notice{question: question{event: e, proposed: x, verdict: verdict}})
}

// Doubts implements talks.Loop.
func (i *inbox) Doubts() { i.put(notice{doubts: true}) }

// Corrected implements talks.Loop.
func (i *inbox) Corrected() { i.put(notice{corrected: true}) }

// Joined implements arrival.Loop.
func (i *inbox) Joined() { i.put(notice{joined: true}) }
