package averaging

import (
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// EventKind says what an Event reports.
type EventKind uint8

const (
	// StepDone: the trainer has applied a gradient step and asks to go on.
	StepDone EventKind = iota + 1
	// ViewChanged: Overlay holds the links of a new view. It is reported only
	// when members or roles differ.
	ViewChanged
	// Proposed: Peer, in its life Incarnation, proposes the inbound exchange Exchange.
	Proposed
	// Accepted: Peer has accepted the outbound exchange Exchange.
	Accepted
	// Refused: Peer has refused the outbound exchange Exchange for Reason.
	Refused
	// Finished: the exchange is complete at this side. Cost is the processor
	// time that it took here.
	Finished
	// Failed: the exchange broke off; slices applied by then stay applied. Slices that it leaves
	// in doubt are reported first, so that the exchange always counts in Overlap. Reason is Unfit
	// if this side's values cannot be sent to anybody, and else 0. After is how long this side
	// waited for Peer in vain, if the exchange ended that way before a slice of Peer's came.
	Failed
	// TimerFired: the timer Timer, set for Exchange, has run out.
	TimerFired
	// PeerLost: Peer cannot be reached.
	PeerLost
	// RunOver: the flock has done its work. A step that has begun may still be reported
	// after it; no other follows.
	RunOver
	// Quarantined: Peer has broken the protocol; no exchange is to be made with it for
	// After, from now on.
	Quarantined
	// Doubt: there are now Unresolved inbound exchanges of which this side does not
	// know whether the partner has applied the last slices.
	Doubt
)

// Event is what has happened to a peer. Only the fields that its kind names
// have a meaning. It is a plain value so that handling one allocates nothing.
type Event struct {
	Kind     EventKind
	Peer     topology.PeerID
	Exchange ExchangeID
	// Inbound tells which side of the exchange the local peer is on: it accepted
	// it (true) or initiated it.
	Inbound bool
	// Incarnation grows whenever Peer begins to count its exchanges anew.
	Incarnation uint64
	Reason      Reason
	Timer       TimerKind
	Overlay     *topology.Overlay
	Cost        time.Duration
	After       time.Duration
	// Moved, with StepDone, is how far the model has moved since its last exchange,
	// in lengths of a step: learning rate times norm of the gradient. It is needed
	// for Pace.Drift.
	Moved float64
	// Stride, with StepDone, is the length of a step, and Progress how much of the run is
	// done, 0 to 1. They are needed for Pace.Consensus.
	Stride, Progress float64
	// Speed, with StepDone, is this peer's steps per time divided by the mean of the
	// flock's peers; 0 means not known. It is needed for Pace.BySpeed.
	Speed float64
	// Between, with StepDone, is about the time from one step to the next, if several steps are
	// reported at once; else it is 0, and the machine measures the time between reports.
	Between time.Duration
	// Distance, with Finished, is that of the two models before the exchange, and
	// Bytes what it moved in both directions.
	Distance float64
	Bytes    uint64
	// Unresolved is a number of exchanges, not of slices.
	Unresolved int
}

// String prints the event as transcripts show it.
func (e Event) String() string {
	switch e.Kind {
	case StepDone:
		return "step done"
	case ViewChanged:
		return "view changed"
	case Proposed:
		return fmt.Sprintf("proposed by %s, exchange %d", e.Peer, e.Exchange)
	case Accepted:
		return fmt.Sprintf("accepted by %s, exchange %d", e.Peer, e.Exchange)
	case Refused:
		return fmt.Sprintf("refused by %s, exchange %d: %s", e.Peer, e.Exchange, e.Reason)
	case Finished:
		return fmt.Sprintf("finished %s", e.side())
	case Failed:
		return fmt.Sprintf("failed %s", e.side())
	case TimerFired:
		return fmt.Sprintf("timer %s, exchange %d with %s", e.Timer, e.Exchange, e.Peer)
	case PeerLost:
		return fmt.Sprintf("lost %s", e.Peer)
	case RunOver:
		return "run over"
	case Quarantined:
		return fmt.Sprintf("quarantined %s for %s", e.Peer, e.After)
	case Doubt:
		return fmt.Sprintf("%d exchanges in doubt", e.Unresolved)
	}
	return "unknown event"
}

func (e Event) side() string {
	if e.Inbound {
		return fmt.Sprintf("inbound exchange %d of %s", e.Exchange, e.Peer)
	}
	return fmt.Sprintf("outbound exchange %d with %s", e.Exchange, e.Peer)
}

// ActionKind says what an Action requests.
type ActionKind uint8

const (
	// Proceed: the trainer may take its next step.
	Proceed ActionKind = iota + 1
	// Propose: open exchange Exchange with Peer and, if it accepts, carry it through. Answered by Accepted, Refused or Failed, and
	// after Accepted by Finished or Failed. Overlap is this side's part of what
	// gives the exchange its weight.
	Propose
	// Accept: take part in the inbound exchange. Answered by Finished or Failed.
	// Overlap is this side's part of what gives the exchange its weight.
	Accept
	// Refuse: decline the inbound exchange for Reason. Not answered.
	Refuse
	// Abort: break the exchange off. For an outbound one nothing more need be reported, and
	// later reports are ignored. An inbound one is over, as always, when its Finished or
	// Failed comes; until then it counts in Overlap and its partner cannot use its id
	// again.
	Abort
	// SetTimer: report TimerFired for Timer and Exchange after After.
	SetTimer
	// Settled: the run is over and this peer will initiate nothing more. It goes
	// on serving exchanges.
	Settled
	// Halt: the algorithm cannot go on, for Reason: the trainer's step fails.
	Halt
)

// Action is a request of the machine to its runtime. Only the fields that its kind names
// have a meaning.
type Action struct {
	Kind     ActionKind
	Peer     topology.PeerID
	Exchange ExchangeID
	Inbound  bool
	Reason   Reason
	Timer    TimerKind
	After    time.Duration
	// Overlap is the number of exchanges that may still change this peer's model,
	// the one in question included. The weight of an exchange is 1/(1+c), with c
	// the larger Overlap of its two sides.
	Overlap int
	// Within is how long the exchange may take before it leaves what it has not carried yet to
	// the next one (Pace.Partial); 0 means that it carries the whole model.
	Within time.Duration
	// Across, with Propose and Accept, is above 0 if the partner is at another site, and both speak for others
	// there: the exchange then weighs so many times as much as it would else, if both sides have the same View, and
	// the partner's model is judged by those of other sites, not by those of this peer's own, which are nearer.
	Across float64
	View   uint64 // the digest of the view that Across follows from
}

// String prints the action as transcripts show it.
func (a Action) String() string {
	switch a.Kind {
	case Proceed:
		return "proceed"
	case Propose:
		return fmt.Sprintf("propose exchange %d to %s%s", a.Exchange, a.Peer, a.details())
	case Accept:
		return fmt.Sprintf("accept exchange %d of %s%s", a.Exchange, a.Peer, a.details())
	case Refuse:
		return fmt.Sprintf("refuse exchange %d of %s: %s", a.Exchange, a.Peer, a.Reason)
	case Abort:
		side := "outbound"
		if a.Inbound {
			side = "inbound"
		}
		return fmt.Sprintf("abort %s exchange %d with %s", side, a.Exchange, a.Peer)
	case SetTimer:
		return fmt.Sprintf("set timer %s for exchange %d with %s after %s", a.Timer, a.Exchange, a.Peer, a.After)
	case Settled:
		return "settled"
	case Halt:
		return fmt.Sprintf("halt: %s", a.Reason)
	}
	return "unknown action"
}

// details is the text about what only some exchanges have.
func (a Action) details() (text string) {
	if a.Overlap > 1 {
		text += fmt.Sprintf(", one of %d", a.Overlap)
	}
	if a.Within != 0 {
		text += fmt.Sprintf(", within %s", a.Within)
	}
	if a.Across != 0 {
		text += fmt.Sprintf(", across, %.3g times", a.Across)
	}
	return text
}
