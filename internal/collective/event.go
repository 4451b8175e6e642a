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
	// Accept or Refuse at once. After Accept comes Finished, when all of it has been
	// received, or Failed.
	Offered
	// Received: Peer has sent Message.
	Received
	// Updated: the Update or Adopt asked for has been applied to the parameters. Transfer
	// names the part.
	Updated
	// GradientReady: the trainer has put the shared values from From on of a gradient into Gradient, and computes the
	// others; GradientDone or GradientLost follows. Samples, Initial and Progress are as with GradientDone.
	GradientReady
	// GradientLost: the gradient of which values were ready is not completed.
	GradientLost
	// Wanted: a program beside the training asks who serves, and this peer does not know.
	Wanted
	// Pushed: such a program has added a gradient over Samples samples, for some of the values of a part, to Sum.
	// Transfer names the part.
	Pushed
)

// TimerKinds is the number of kinds of timers.
const TimerKinds = averaging.AcrossInbound + 1

// Event is what has happened to a peer. Progress is set with GradientDone too.
type Event struct {
	averaging.Event
	// Samples, with GradientDone and Pushed, is the number of samples over which the gradient is the mean.
	Samples int
	// Initial, with GradientDone and StepDone, tells that the parameters are the initial ones of the
	// run, without a checkpoint, a copy or a step.
	Initial  bool
	From     int
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
	case GradientReady:
		return fmt.Sprintf("gradient ready from value %d on", e.From)
	case GradientLost:
		return "gradient lost"
	case Wanted:
		return "wanted"
	case Pushed:
		return fmt.Sprintf("pushed, over %d samples, for part %d", e.Samples, e.Transfer.Part)
	}
	return e.Event.String()
}

// Kinds of actions beside those of averaging.
const (
	// Send: carry Transfer to Peer as exchange Exchange. Answered by Accepted, Refused or
	// Failed, and after Accepted by Finished, when the partner is known to have taken all
	// of it in, or Failed. It may be aborted. The values are coded like those of the run's
	// exchanges, or not rounded if Exact is set, for parameters that are to be the same at
	// all peers.
	Send averaging.ActionKind = 64 + iota
	// Load: set Sum to the local Gradient times its weight, or add that to it (Add). What codes of the gradient have
	// lost is forgotten, unless it is added without Forget. Not
	// answered: later actions see the result. A gradient that others would refuse counts as
	// none, and the runtime tells the trainer. Load, Clear and Update are of the part of the
	// values that Transfer names, or of all values if it names none.
	Load
	// Clear: empty Sum, with weight 0. Not answered.
	Clear
	// Update: take Sum, which is empty afterwards, divide each piece by its weight, or by
	// Weight if that is above 0, and let the optimizer make a step of it for the
	// parameters. A piece of weight 0 is a gradient of zeros. Values added to Sum meanwhile
	// count either in this update or in the next. If Progress is above 0, the learning rate
	// is that at Progress: peers that make the same update must agree on it, or their
	// models drift apart. Else it is the peer's own rate. With Forget the optimizer first
	// forgets past gradients, as it does at all peers that make the same update. With Share
	// above 0, only that share of the optimizer's step is made. Each part has an optimizer's
	// memory of its own. Answered by Updated.
	Update
	// Tell: send Message to Peer. Not answered: it may be lost with its connection.
	Tell
	// Pool: set Sum to the parameters times Weight, or unchanged if that is 0. Not answered.
	Pool
	// Adopt: set the parameters to Sum, which is empty afterwards, each piece divided by
	// its weight: peers with equal sums then have the same parameters, byte for byte. A
	// piece of weight 0 leaves the parameters unchanged. Answered by Updated.
	Adopt
	// Commit: add to the parameters what steps and exchanges have added since the last Commit.
	// Not answered: the next gradient, and later exchanges, see the result. For machines that
	// commit by rounds.
	Commit
	// Note: report Fact, about a sum, to people. Not answered.
	Note
)

// Action is a request of the machine to its runtime.
type Action struct {
	averaging.Action
	// Add is for Load, Forget for Update and Load, Exact for Send.
	Add, Forget, Exact bool
	// Weight is for Update and Pool, Progress and Share for Update.
	Weight, Progress, Share float64
	// Batch, with Proceed, is how many samples the next gradient should be of, so that all
	// peers take equally long; 0 leaves the number to the trainer.
	Batch int
	// Version, with Proceed, is that of the parameters, which all members have that make updates together, and which grows by one
	// with each; 0 if it is not known.
	Version  uint64
	Transfer Transfer // for Send; its Part and Parts also for Load, Clear and Update
	Message  Message
	Fact     *sums.Fact
}

// String prints the action as transcripts show it.
func (a Action) String() string {
	switch a.Kind {
	case Send:
		return fmt.Sprintf("send exchange %d to %s: %s", a.Exchange, a.Peer, a.Transfer)
	case Load:
		return map[bool]string{true: "add the gradient to the sum", false: "load the gradient"}[a.Add] + a.part()
	case Clear:
		return "clear the sum" + a.part()
	case Update:
		return a.update()
	case Pool:
		return "pool the parameters"
	case Adopt:
		return "adopt the mean"
	case Commit:
		return "commit"
	case Note:
		return fmt.Sprintf("note of %q: %s: %s %s", a.Fact.Sum, a.Fact.What, a.Fact.Who, a.Fact.Why)
	case Tell:
		return fmt.Sprintf("tell %s: %s", a.Peer, a.Message)
	}
	return a.Action.String()
}

// part prints the part of the values, if it is not all.
func (a Action) part() string {
	if a.Transfer.Parts <= 1 {
		return ""
	}
	return fmt.Sprintf(", part %d of %d", a.Transfer.Part, a.Transfer.Parts)
}

// update prints an Update with the fields that are set.
func (a Action) update() string {
	text := "update" + a.part()
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
