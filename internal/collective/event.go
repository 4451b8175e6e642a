package collective

import (
	"fmt"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/sums"
)

// Kinds of events beside those of averaging.
const (
	// GradientDone: the trainer of a machine that averages gradients has put a gradient
	// over Samples samples into Gradient and asks to go on.
	GradientDone averaging.EventKind = 64 + iota
	// Offered: Peer wants to send Transfer as its exchange Exchange. It is answered by
	// Accept or Refuse at once, and after Accept followed by Finished, when all of it
	// has been taken in, or Failed.
	Offered
	// Received: Peer has told Word.
	Received
	// Updated: the Update or Adopt asked for has been applied to the parameters.
	Updated
)

// TimerKinds is the number of kinds of timers.
const TimerKinds = averaging.RoundDeadline + 1

// Event is what has happened to a peer. Of Progress, GradientDone has it too.
type Event struct {
	averaging.Event
	// Samples, with GradientDone, is how many samples the gradient is the mean of.
	Samples int
	// Initial, with GradientDone, is that the parameters are those with which every peer of
	// the run begins: of no checkpoint, no copy and no step.
	Initial  bool
	Transfer Transfer
	Message  Message
}

// String prints the event as transcripts show it.
func (e Event) String() string {
	switch e.Kind {
	case GradientDone:
		return fmt.Sprintf("gradient done over %d samples", e.Samples)
	case Offered:
		return fmt.Sprintf("offered by %s, exchange %d: %s", e.Peer, e.Exchange, e.Transfer)
	case Received:
		return fmt.Sprintf("told by %s: %s", e.Peer, e.Message)
	case Updated:
		return "updated"
	}
	return e.Event.String()
}

// Kinds of actions beside those of averaging.
const (
	// Send: carry Transfer to Peer as exchange Exchange. Answered by Accepted, Refused
	// or Failed, and after Accepted by Finished, when the partner is known to have
	// taken all of it in, or Failed. It may be aborted. What it carries is coded as the
	// run's exchanges are, or not rounded if Exact is set: for parameters that are to be
	// the same at all peers.
	Send averaging.ActionKind = 64 + iota
	// Load: Sum is the local Gradient times its weight, or has it added (Add). Not
	// answered: whatever follows sees it. A gradient that others would refuse to take
	// counts as none, and the runtime tells the trainer.
	Load
	// Clear: Sum is empty, of no weight. Not answered.
	Clear
	// Update: take Sum, which is empty afterwards, divide each piece by its weight, or
	// by Weight if that is above 0, and let the optimizer make a step of it for the
	// parameters. A piece of no weight is a gradient of zeros. What is added to Sum
	// meanwhile counts either in this update or in the next. The learning rate is that
	// at Progress, if it is above 0: who make the same update at several peers must
	// agree on it, or their models drift apart. Else it is the peer's own. With Forget the
	// optimizer first forgets what it knows of gradients before, as all do who make the
	// same update. With Share above 0, that share of the optimizer's step is made. Answered
	// by Updated.
	Update
	// Tell: tell Peer Word. Not answered: it may be lost with its connection.
	Tell
	// Pool: Sum is the parameters times Weight, or as they are if that is 0. Not answered.
	Pool
	// Adopt: the parameters are Sum, which is empty afterwards, each piece divided by its
	// weight: peers whose sums are the same have the same parameters then, byte for byte.
	// A piece of no weight leaves the parameters as they are. Answered by Updated.
	Adopt
	// Note: people may want to know Fact, of a sum. Not answered.
	Note
)

// Action is what a machine wants done.
type Action struct {
	averaging.Action
	// Add is for Load, Forget for Update, Exact for Send.
	Add, Forget, Exact bool
	// Weight is for Update and Pool, Progress and Share for Update.
	Weight, Progress, Share float64
	// Batch, with Proceed, is how many samples the next gradient should be of, so that all
	// peers take equally long; 0 is as many as the trainer likes.
	Batch    int
	Transfer Transfer
	Message  Message
	Fact     *sums.Fact
}

// String prints the action as transcripts show it.
func (a Action) String() string {
	switch a.Kind {
	case Send:
		return fmt.Sprintf("send exchange %d to %s: %s", a.Exchange, a.Peer, a.Transfer)
	case Load:
		return map[bool]string{true: "add the gradient to the sum", false: "load the gradient"}[a.Add]
	case Clear:
		return "clear the sum"
	case Update:
		return a.update()
	case Pool:
		return "pool the parameters"
	case Adopt:
		return "adopt the mean"
	case Note:
		return fmt.Sprintf("note of %q: %s: %s %s", a.Fact.Sum, a.Fact.What, a.Fact.Who, a.Fact.Why)
	case Tell:
		return fmt.Sprintf("tell %s: %s", a.Peer, a.Message)
	}
	return a.Action.String()
}

// update prints an Update with what it is not by itself.
func (a Action) update() string {
	text := "update"
	if a.Weight > 0 {
		text += fmt.Sprintf(", of weight %g", a.Weight)
	}
	if a.Progress > 0 {
		text += fmt.Sprintf(", at %.3f of the run", a.Progress)
	}
	if a.Share > 0 {
		text += fmt.Sprintf(", %.3g of a step", a.Share)
	}
	if a.Forget {
		text += ", forgetting those before"
	}
	return text
}
