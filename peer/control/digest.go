package control

import (
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// State is what a peer is about.
type State uint8

// The states of a peer, as they are on the wire.
const (
	Joining State = iota
	Copying
	Training
	Paused
	Over
)

// String is the state in a word.
func (s State) String() string {
	names := [...]string{"joining", "copying", "training", "paused", "over"}
	if int(s) < len(names) {
		return names[s]
	}
	return "unknown"
}

// Digest is what a member tells all others of itself now and then.
type Digest struct {
	Peer        seam.PeerID
	Incarnation uint64
	// Sequence grows with each digest of an incarnation.
	Sequence uint64
	State    State
	// Steps are the member's own, FlockSteps its estimate of everybody's.
	Steps, FlockSteps uint64
	// Exchanges are those it completed, Failed those that broke off.
	Exchanges, Failed uint64
	// Loss is NaN before its first step.
	Loss float64
	// Samples is the number of samples that it learns from in a second.
	Samples           float64
	ConsensusDistance float64
	// Partners are the few that the member began exchanges with last; those that are no
	// members any more are left out.
	Partners []Met
	// Heard is when this peer heard it, by its own clock; nothing depends on it.
	Heard time.Time
}

// Met tells of exchanges that a member began with one partner.
type Met struct {
	Partner seam.PeerID
	// Exchanges counts those that completed. As others tell them they begin again at 0
	// after 2^32.
	Exchanges uint64
}
