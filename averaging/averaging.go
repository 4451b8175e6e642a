package averaging

import "time"

// Machine is one peer's part of an averaging algorithm.
//
// Handle takes one event at moment now, measured from any fixed origin and
// never decreasing, and appends the actions that it calls for to actions, in
// the order in which they are to be carried out. It returns the extended slice,
// so a caller that reuses the slice allocates nothing. A Machine is not safe
// for concurrent use: one event loop owns it.
//
// Every StepDone is answered by a Proceed or a Halt, at once or after later events; every
// Proposed is answered at once by an Accept or a Refuse.
type Machine interface {
	Handle(now time.Duration, event Event, actions []Action) []Action
}

// ExchangeID names an exchange among those that one incarnation of a peer has
// initiated. Ids grow from 1.
type ExchangeID uint64

// Reason says why a proposal is refused, as far as a machine decides it. The runtime
// refuses for reasons of its own (another layout, run or codec) before a machine is asked;
// a machine sees these as Unfit.
type Reason uint8

const (
	// Busy: the passive takes part in as many exchanges as it may. Ask another
	// now, and this one again later.
	Busy Reason = iota + 1
	// WrongRole: the asked peer is no passive in its own view. The two views will
	// agree soon.
	WrongRole
	// Closing: the asked peer is leaving.
	Closing
	// Unfit: the two peers cannot exchange at all (another layout, run, version
	// or codec). Not asked again while the view stays as it is.
	Unfit
	// Quarantine: the asking peer has broken the protocol, and the asked peer refuses it
	// for a while. Asked again after a time that doubles with each such refusal.
	Quarantine
	// Round: the two peers are not in the same round of an algorithm in lock-step.
	Round
	// NoCoordinator: no peer that coordinates the run, or serves its parameters, can be reached.
	NoCoordinator
	// NotMember: the asked peer has no record of the asking one. Ask another now, and
	// this one again later: news of members travels within seconds.
	NotMember
)

// String names the reason as transcripts and logs show it.
func (r Reason) String() string {
	if int(r) >= len(reasonNames) || reasonNames[r] == "" {
		return "unknown reason"
	}
	return reasonNames[r]
}

var reasonNames = [...]string{
	Busy:          "busy",
	WrongRole:     "role",
	Closing:       "closing",
	Unfit:         "unfit",
	Quarantine:    "quarantine",
	Round:         "round",
	NoCoordinator: "the coordinator is lost",
	NotMember:     "not a member",
}

// TimerKind tells a machine's timers apart. Setting a timer replaces the one of
// the same kind, so a runtime needs a slot for each kind and no more.
type TimerKind uint8

const (
	// OutboundDeadline bounds the exchange that the peer initiated.
	OutboundDeadline TimerKind = iota
	// InboundDeadline bounds the exchanges that the peer accepted: it is set for
	// the one that must end first.
	InboundDeadline
	// RoundDeadline is for whatever else a machine waits for.
	RoundDeadline
	// AcrossOutbound and AcrossInbound are OutboundDeadline and InboundDeadline of exchanges with
	// other sites, which run beside those inside.
	AcrossOutbound
	AcrossInbound
)

// String names the kind as transcripts show it.
func (k TimerKind) String() string {
	switch k {
	case OutboundDeadline:
		return "outbound-deadline"
	case InboundDeadline:
		return "inbound-deadline"
	case RoundDeadline:
		return "round-deadline"
	case AcrossOutbound:
		return "across-outbound-deadline"
	case AcrossInbound:
		return "across-inbound-deadline"
	}
	return "unknown timer"
}
