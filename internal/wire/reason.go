package wire

import (
	"errors"
	"fmt"
)

// Reason says why a peer refuses another. Numbers that this release does not know are legal on the wire: refusals of
// any release must be readable.
type Reason uint8

// The reasons. Zero is none.
const (
	// ReasonBusy: the peer takes part in as many exchanges as it allows at once.
	ReasonBusy Reason = 1
	// ReasonRole: the peer is not passive: its role has changed, or the asking peer's view is old.
	ReasonRole Reason = 2
	// ReasonLayout: the models have different names, shapes or order of parameters.
	ReasonLayout Reason = 3
	// ReasonRun: the peer takes part in another run.
	ReasonRun Reason = 4
	// ReasonVersion: the peers speak no common wire version.
	ReasonVersion Reason = 5
	// ReasonCodec: none of the offered codecs is acceptable.
	ReasonCodec Reason = 6
	// ReasonQuarantine: the asking peer has broken the protocol, and is refused for a time.
	ReasonQuarantine Reason = 7
	// ReasonNotMember: the peer has no valid record of the asking peer.
	ReasonNotMember Reason = 8
	// ReasonClosing: the run is over, or the peer is shutting down.
	ReasonClosing Reason = 9
	// ReasonProtocol: what the asking peer sent is malformed or out of order.
	ReasonProtocol Reason = 10
	// ReasonAdmission: the asking peer is not on the other's list, or has not proven that it knows the run's key.
	ReasonAdmission Reason = 11
	// ReasonJoining: the peer cannot give its model, since it is still copying one itself.
	ReasonJoining Reason = 12
	// ReasonOperator: the peer obeys no operator, or another one than the signer of the message.
	ReasonOperator Reason = 13
	// ReasonRound: the peers are in different rounds of a lock-step algorithm.
	ReasonRound Reason = 14
)

// reasons has the texts of each known reason. A permanent reason stays until somebody changes the configuration or
// the release of one of the two peers.
var reasons = [256]struct {
	name      string // in docs/WIRE.md
	permanent bool
	remedy    string
}{
	ReasonBusy:       {"busy", false, "Nothing to do: the next neighbour is asked, and this one again later."},
	ReasonRole:       {"role", false, "Nothing to do: roles settle as membership news spreads; if this persists, check that both peers see the same members."},
	ReasonLayout:     {"layout", true, "Start every peer of the run with the same model: the same parameter names, shapes and order; if it is the same, with the same build."},
	ReasonRun:        {"run", true, "Give every peer the same run name, or join a peer that takes part in this run."},
	ReasonVersion:    {"version", true, "Install the same release of murmuration on both peers, or releases whose wire versions overlap."},
	ReasonCodec:      {"codec", true, "Let the peers share at least one codec: give both the same codec setting, or install the same release."},
	ReasonQuarantine: {"quarantine", false, "Read the other peer's log for what it holds against this one; the quarantine ends by itself."},
	ReasonNotMember:  {"not a member", false, "Wait until membership news has spread; if this persists, check the run's allowlist or run key, and that the peer has joined."},
	ReasonClosing:    {"closing", false, "Nothing to do if the run is over; otherwise join a peer that is still running."},
	ReasonProtocol:   {"protocol", false, "Report it with the logs of both peers: one of them has a defect, or something between them alters the bytes."},
	ReasonAdmission:  {"admission", true, "Have this peer's id added to the allowlist of the other peers, or give all peers the same run key."},
	ReasonJoining:    {"newcomer", false, "Nothing to do: other members are asked, and this one again later."},
	ReasonOperator:   {"operator", true, "Start every peer of the run with the id of the same operator, and sign with the key that belongs to it."},
	ReasonRound:      {"round", false, "Nothing to do: the peer that is behind catches up; if this persists, check that all peers run the same strategy and see the same members."},
}

// String returns the name that docs/WIRE.md uses.
func (r Reason) String() string {
	if name := reasons[r].name; name != "" {
		return name
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Remedy tells the user of the refused peer what to do, in one sentence.
func (r Reason) Remedy() string {
	if remedy := reasons[r].remedy; remedy != "" {
		return remedy
	}
	return "Install the newest release on both peers: this one does not know the reason that the other gives."
}

// Permanent tells whether asking again is useless until somebody changes the configuration or the release of one of
// the two peers.
func (r Reason) Permanent() bool { return reasons[r].permanent }

// Differs returns the reason to refuse a peer of theirRun and theirLayout; 0 if both are this peer's own.
func Differs(run string, layout [HashSize]byte, theirRun string, theirLayout [HashSize]byte) (Reason, string) {
	switch {
	case theirRun != run:
		return ReasonRun, fmt.Sprintf("this is run %q", run)
	case theirLayout != layout:
		ours, theirs := [4]byte(layout[:]), [4]byte(theirLayout[:]) // slices of the arrays would be allocated in each call
		return ReasonLayout, fmt.Sprintf("the layout here is %x, yours is %x", ours, theirs)
	}
	return 0, ""
}

// ErrRefused: the partner refuses. The error is a *Refusal with the reason.
var ErrRefused = errors.New("refused")

// Refusal is a partner's Refuse, as an error. It satisfies errors.Is(err, ErrRefused).
type Refusal struct {
	Refuse
	// Awaits is the number that a greeted process answers with while it waits for the run itself; else 0.
	Awaits uint64
}

// Is implements the interface that errors.Is looks for.
func (*Refusal) Is(target error) bool { return target == ErrRefused }

// Refused returns the error for the payload of a REFUSE frame: a *Refusal, unless the payload is malformed.
func Refused(payload []byte) error {
	var r Refusal
	if err := r.Decode(payload); err != nil {
		return err
	}
	return &r
}

// Error says the reason and the remedy.
func (r *Refusal) Error() string {
	if r.Detail == "" {
		return fmt.Sprintf("refused: %s. %s", r.Reason, r.Reason.Remedy())
	}
	return fmt.Sprintf("refused: %s (%s). %s", r.Reason, r.Detail, r.Reason.Remedy())
}
