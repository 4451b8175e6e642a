package peer

import (
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// What a caller of a peer handles, to be tested with errors.Is.
var (
	// ErrRunOver: the flock has done its work. The peer goes on serving exchanges
	// until Close.
	ErrRunOver = errors.New("the run is over")
	// ErrClosed: the peer has been closed.
	ErrClosed = errors.New("the peer is closed")
	// ErrNotFinite: a gradient or step holds NaN or infinite values, or a step is so
	// long that no other peer would take the model after it. It has not been applied,
	// and training may go on.
	ErrNotFinite = errors.New("NaN or infinite values")
	// ErrLayout, ErrRun, ErrVersion and ErrCodec: this peer and another cannot take
	// part in one run; see RefusedError.
	ErrLayout  = errors.New("another layout of parameters")
	ErrRun     = errors.New("another run")
	ErrVersion = errors.New("another wire version")
	ErrCodec   = errors.New("no codec in common")
	// ErrIdentity: this peer's key has signed a record with the highest incarnation
	// there is, so that the others believe no later one.
	ErrIdentity = errors.New("this identity is used up: somebody has signed its last incarnation. Make a new key, and find out who has this one")
	// ErrOperator: a member obeys another operator, or none.
	ErrOperator = errors.New("another operator, or none")
)

// RefusedError says that a peer, asked to be joined, refused, and that asking
// again cannot help. It unwraps to ErrLayout, ErrRun, ErrVersion, ErrCodec or
// ErrNotAdmitted.
type RefusedError struct {
	// Peer is the one that refused, or that was refused.
	Peer seam.PeerID
	// Detail is what it said beyond the reason.
	Detail string
	reason wire.Reason
	// perhaps: it may pass. The process has no handler for the run or the protocol,
	// which may be because its peer is only starting, or leaving; or a list is about
	// to change.
	perhaps bool
}

// Error names the peer, the reason and what to do about it.
func (e *RefusedError) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("peer %s refuses: %s. %s", e.Peer, e.reason, e.reason.Remedy())
	}
	return fmt.Sprintf("peer %s refuses: %s (%s). %s", e.Peer, e.reason, e.Detail, e.reason.Remedy())
}

// Unwrap gives the sentinel of the reason.
func (e *RefusedError) Unwrap() error {
	switch e.reason {
	case wire.ReasonLayout:
		return ErrLayout
	case wire.ReasonRun:
		return ErrRun
	case wire.ReasonVersion:
		return ErrVersion
	case wire.ReasonCodec:
		return ErrCodec
	case wire.ReasonAdmission:
		return ErrNotAdmitted
	case wire.ReasonOperator:
		return ErrOperator
	}
	return nil
}
