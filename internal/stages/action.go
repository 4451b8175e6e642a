package stages

import (
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// ID names a micro-batch for all: whose rows it is made of, and a number there. Labels, and random numbers of layers,
// follow from it.
type ID struct {
	Source topology.PeerID
	Number uint64
	// Asks: the source wants the outputs of the last stage, and no gradient is computed.
	Asks bool
	// Round is the one that it belongs to, from 0, in a run of rounds (Config.Rounds).
	Round uint64
}

// Key names a micro-batch at the member that holds it: who sent it, and the number of that sending. One that comes by
// two ways is two: what comes from one sender is never answered to another.
type Key struct {
	From   topology.PeerID
	Number uint64
}

// Kind says what an Action asks for.
type Kind uint8

const (
	// ComputeForward: compute a micro-batch through this stage, with the newest parameters, and tell Computed.
	ComputeForward Kind = iota
	// ComputeBack: compute it back, with the parameters of its forward pass, add its gradient, and tell Computed. In the last
	// stage it goes forward first.
	ComputeBack
	// Send: send what goes on to a member of the next stage, under a number.
	Send
	// Reply: answer the member that the micro-batch came from. With Done go the errors over its inputs.
	Reply
	// Release: its memory is free.
	Release
	// Step: make a step of the gradients that were added since the last, and tell Stepped.
	Step
)

// Answer is what a member says of a micro-batch that was sent to it.
type Answer uint8

const (
	// Done: it is computed, and the errors go back, or the outputs of one that asks for them. To another Source it is a word
	// alone.
	Done Answer = iota
	// NoRoom: the member has too many, and has not taken it.
	NoRoom
	// GivenUp: its values were of no use, such as NaN, or nobody behind answers.
	GivenUp
)

// Action is what is to be done. Actions of one call are in order.
type Action struct {
	Kind   Kind
	At     Key // which micro-batch of this member
	ID     ID
	To     topology.PeerID // of Send and Reply
	Number uint64          // of Send: its name at the other member; of Reply: that which the other member gave
	Answer Answer          // of Reply
	Load   Load            // of Reply
}

// Counts say what became of micro-batches: those that came are done, lost, or still here.
type Counts struct {
	Came  uint64 // to this side
	Done  uint64 // and back
	Lost  uint64 // given up: of no use, or who sent them has gone, or nobody behind answered
	Again uint64 // times that one was sent on again, since a member was gone or silent
	Late  uint64 // answers that nobody waited for: computed by the stages behind, and counted there, twice
}

// mean is the usual duration of something.
type mean time.Duration

// smoothing is what a new figure counts in a mean.
const smoothing = 8

// add adds a duration; one that is far above the mean counts as twice that, so that no single member moves it far.
func (m *mean) add(d time.Duration) {
	if *m == 0 {
		*m = mean(d)
	} else {
		*m += (min(mean(d), 2**m) - *m) / smoothing
	}
}
