package seam

import "errors"

// ErrNotAdmitted: one of the two processes does not let the other take part. It may
// surface at the first Read.
var ErrNotAdmitted = errors.New("not admitted")

const (
	// MinRunKey and MaxRunKey bound the bytes of a run's key. What a member shows of
	// it can be tried against guesses, so it must not be one that can be guessed.
	MinRunKey = 16
	MaxRunKey = 1024
)

// MaxMark is the most bytes of a member's mark.
const MaxMark = 32

// Admission decides who takes part in a run. An adapter without one takes everybody.
// It is asked under locks of the adapter's, so it answers at once and asks nothing of
// the adapter. Safe for concurrent use.
type Admission interface {
	// Mark is what the local member shows with its record to those that ask for more
	// than an identity: at most MaxMark bytes, nil if it has nothing to show. The
	// slice is not the caller's.
	Mark() []byte
	// Admit returns nil if a peer whose identity is proven may take part when it
	// shows this mark, and otherwise why not: an ErrNotAdmitted. What it says may
	// change at any time.
	Admit(peer PeerID, mark []byte) error
}
