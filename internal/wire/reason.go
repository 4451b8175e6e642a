package wire

import "fmt"

// Reason says why a peer refuses another. Numbers that this release does not know
// are legal on the wire: a refusal has to be readable whoever sent it.
type Reason uint8

// The reasons. Zero is none.
const (
	// ReasonBusy: as many exchanges are under way as the peer takes at once.
	ReasonBusy Reason = 1
	// ReasonRole: the peer is not passive; its role has changed, or the view of the
	// asking peer is old.
	ReasonRole Reason = 2
	// ReasonLayout: the models have different names, shapes or order of parameters.
	ReasonLayout Reason = 3
	// ReasonRun: the peer takes part in another run.
	ReasonRun Reason = 4
	// ReasonVersion: the peers speak no common wire version.
	ReasonVersion Reason = 5
	// ReasonCodec: none of the offered codecs is acceptable.
	ReasonCodec Reason = 6
	// ReasonQuarantine: the asking peer has sent what it should not have, and is kept
	// out for a while.
	ReasonQuarantine Reason = 7
	// ReasonNotMember: the peer knows no valid record of the asking one.
	ReasonNotMember Reason = 8
	// ReasonClosing: the run is over, or the peer is shutting down.
	ReasonClosing Reason = 9
	// ReasonProtocol: what the asking peer sent is malformed or out of order.
	ReasonProtocol Reason = 10
	// ReasonAdmission: the asking peer is not on the other's list, or has not shown
	// that it knows the run's key.
	ReasonAdmission Reason = 11
	// ReasonNewcomer: the peer has no model to give yet: it is copying one itself.
	ReasonNewcomer Reason = 12
	// ReasonOperator: the peer heeds another operator than the one whose message it
	// was sent, or none.
	ReasonOperator Reason = 13
	// ReasonRound: the peers are not in the same round of an algorithm in lock-step.
	ReasonRound Reason = 14
)

// String returns the name that docs/WIRE.md uses.
func (r Reason) String() string {
	switch r {
	case ReasonBusy:
		return "busy"
	case ReasonRole:
		return "role"
	case ReasonLayout:
		return "layout"
	case ReasonRun:
		return "run"
	case ReasonVersion:
		return "version"
	case ReasonCodec:
		return "codec"
	case ReasonQuarantine:
		return "quarantine"
	case ReasonNotMember:
		return "not a member"
	case ReasonClosing:
		return "closing"
	case ReasonProtocol:
		return "protocol"
	case ReasonAdmission:
		return "admission"
	case ReasonNewcomer:
		return "newcomer"
	case ReasonOperator:
		return "operator"
	case ReasonRound:
		return "round"
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Remedy tells the user of the refused peer, in one sentence, what to do.
func (r Reason) Remedy() string {
	switch r {
	case ReasonBusy:
		return "Nothing to do: the next neighbour is asked, and this one again later."
	case ReasonRole:
		return "Nothing to do: roles settle as membership news spreads; if this persists, check that both peers see the same members."
	case ReasonLayout:
		return "Start every peer of the run with the same model: the same parameter names, shapes and order."
	case ReasonRun:
		return "Give every peer the same run name, or join a peer that takes part in this run."
	case ReasonVersion:
		return "Install the same release of murmuration on both peers, or releases whose wire versions overlap."
	case ReasonCodec:
		return "Let the peers share at least one codec: give both the same codec setting, or install the same release."
	case ReasonQuarantine:
		return "Read the other peer's log for what it holds against this one; the quarantine ends by itself."
	case ReasonNotMember:
		return "Wait until membership news has spread; if this persists, check the run's allowlist or run key, and that the peer has joined."
	case ReasonClosing:
		return "Nothing to do if the run is over; otherwise join a peer that is still running."
	case ReasonProtocol:
		return "Report it with the logs of both peers: one of them has a defect, or something between them alters the bytes."
	case ReasonAdmission:
		return "Have this peer's id added to the allowlist of the other peers, or give all peers the same run key."
	case ReasonNewcomer:
		return "Nothing to do: other members are asked, and this one again later."
	case ReasonOperator:
		return "Start every peer of the run with the id of the same operator, and sign with the key that belongs to it."
	case ReasonRound:
		return "Nothing to do: the peer that is behind catches up; if this persists, check that all peers run the same strategy and see the same members."
	}
	return "Install the newest release on both peers: this one does not know the reason that the other gives."
}

// Permanent tells whether asking again cannot help until somebody changes the
// configuration or the release of one of the two peers.
func (r Reason) Permanent() bool {
	switch r {
	case ReasonLayout, ReasonRun, ReasonVersion, ReasonCodec, ReasonAdmission, ReasonOperator:
		return true
	}
	return false
}
