// Package averaging decides who exchanges with whom and when the trainer may
// go on. It never sees a model: its machines are pure, deterministic state
// machines that take events and give actions, with the time and the source of
// randomness as arguments. Package peer carries the actions out over a real
// network; a test or a simulation does so in virtual time, with the same code.
//
// The machine of this package is ADPSGD, asynchronous decentralized parallel
// SGD (Lian et al., 2018): every so many local steps an active peer averages
// its model with one passive neighbour, and no trainer ever waits. Rival
// algorithms are machines too; they live in package baseline.
//
// What an exchange does to the parameters is not decided here: see
// internal/replica. Who neighbours whom is package topology.
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
// Every StepDone is answered by a Proceed, at once or after later events; every
// Proposed is answered at once by an Accept or a Refuse.
type Machine interface {
	Handle(now time.Duration, event Event, actions []Action) []Action
}

// ExchangeID names an exchange among those that one incarnation of a peer has
// initiated. Ids grow from 1.
type ExchangeID uint64

// Reason says why a proposal is refused, as far as a machine decides it. The
// runtime refuses for reasons of its own (another layout, run or codec) before
// a machine is asked; for a machine, those are Unfit.
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
)

// String names the reason as transcripts and logs show it.
func (r Reason) String() string {
	switch r {
	case Busy:
		return "busy"
	case WrongRole:
		return "role"
	case Closing:
		return "closing"
	case Unfit:
		return "unfit"
	}
	return "unknown reason"
}

// TimerKind tells a machine's timers apart. Setting a timer replaces the one of
// the same kind, so a runtime needs a slot for each kind and no more.
type TimerKind uint8

const (
	// OutboundDeadline bounds the exchange that the peer initiated.
	OutboundDeadline TimerKind = iota
	// InboundDeadline bounds the exchange that the peer accepted.
	InboundDeadline
	// TimerKinds is the number of kinds.
	TimerKinds
)

// String names the kind as transcripts show it.
func (k TimerKind) String() string {
	switch k {
	case OutboundDeadline:
		return "outbound-deadline"
	case InboundDeadline:
		return "inbound-deadline"
	}
	return "unknown timer"
}
