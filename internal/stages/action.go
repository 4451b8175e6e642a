package stages

import (
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// Kind says what an Action asks for.
type Kind uint8

const (
	// ComputeForward: compute a micro-batch through this stage, with the newest parameters, and tell Computed.
	ComputeForward Kind = iota
	// ComputeBack: compute it back, with the parameters of its forward pass, add its gradient, and tell Computed. In the last
	// stage it goes forward first.
	ComputeBack
	// SendForward: send what goes on to a member of the next stage.
	SendForward
	// SendBack: send the errors over its inputs to the member that it came from, with the Load.
	SendBack
	// Refuse: tell the member that it came from that there is no room, with the Load.
	Refuse
	// Release: its memory is free. Nobody waits for it any more.
	Release
	// Step: make a step of the gradients that were added since the last, and tell Stepped.
	Step
)

// Action is what is to be done. Actions of one call are in order.
type Action struct {
	Kind Kind
	ID   ID
	To   topology.PeerID // of SendForward, SendBack and Refuse
	Load Load            // of SendBack and Refuse
}

// Counts say what became of micro-batches. They add up: those that came are done, waiting, or lost.
type Counts struct {
	Came  uint64 // to this side
	Done  uint64 // and back
	Again uint64 // sent to another member, as the first has died, refused nothing and was not heard of
	Late  uint64 // answers that nobody waited for: computed twice by the stages behind
	Lost  uint64 // given up: who sent them has died, or nobody was there to go on
}

// Bounds of time.
const (
	// leastWait is the least time for which an answer is waited for, mostWaits how many times the usual time beyond that.
	leastWait = time.Second
	mostWaits = 8
	// smoothing is what a new figure counts in a mean.
	smoothing = 8
)

// mean is the usual duration of something.
type mean time.Duration

func (m *mean) add(d time.Duration) {
	if *m == 0 {
		*m = mean(d)
	} else {
		*m += (mean(d) - *m) / smoothing
	}
}

// wait is how long something of this usual duration is waited for.
func (m mean) wait() time.Duration { return max(leastWait, mostWaits*time.Duration(m)) }
