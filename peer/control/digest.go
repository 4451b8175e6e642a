package control

import (
	"math"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// State is what a peer is about.
type State uint8

// The states of a peer, as they are on the wire. Nobody says Closed there: it is what a peer
// that has left the run says of itself to its own program.
const (
	Joining State = iota
	Copying
	Training
	Paused
	Over
	Closed
)

// String is the state in a word.
func (s State) String() string {
	names := [...]string{"joining", "copying", "training", "paused", "over", "closed"}
	if int(s) < len(names) {
		return names[s]
	}
	return "unknown"
}

// Digest is what a member tells all others of itself now and then.
type Digest struct {
	Peer seam.PeerID
	// Name and Version are what the member calls itself and was built from: printable
	// text, empty until it is known.
	Name, Version string
	Incarnation   uint64
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
	// Heard is when this peer heard it, and Exchanged when the first digest was heard that
	// told of the last exchange, by this peer's own clock; nothing depends on them. Exchanged
	// is zero if none is known of.
	Heard, Exchanged time.Time
}

// Met tells of exchanges that a member began with one partner.
type Met struct {
	Partner seam.PeerID
	// Exchanges counts those that completed. As others tell them they begin again at 0
	// after 2^32.
	Exchanges uint64
}

// Body is what a message says of a digest; docs/WIRE.md has the bytes.
func (d Digest) Body() wire.Digest {
	said := wire.Digest{
		Incarnation: d.Incarnation, Steps: d.Steps, FlockSteps: d.FlockSteps, Exchanges: d.Exchanges, Failed: d.Failed,
		State: uint8(d.State), Loss: finite(d.Loss), Samples: finite(d.Samples), Distance: finite(d.ConsensusDistance),
		Met: uint8(min(len(d.Partners), wire.MaxDigestPartners)),
	}
	said.HasLoss = said.Loss == d.Loss
	for i, m := range d.Partners[:said.Met] {
		said.Partners[i] = wire.DigestPartner{Mark: m.Partner.Fingerprint(), Exchanges: uint32(m.Exchanges & math.MaxUint32)}
	}
	return said
}

// DigestOf reads what a message says of a member, but for its partners, of which it has
// only marks.
func DigestOf(member seam.PeerID, said wire.Digest, heard time.Time) Digest {
	d := Digest{
		Peer: member, Incarnation: said.Incarnation, State: State(said.State),
		Steps: said.Steps, FlockSteps: said.FlockSteps, Exchanges: said.Exchanges, Failed: said.Failed,
		Loss: said.Loss, Samples: said.Samples, ConsensusDistance: said.Distance, Heard: heard,
	}
	if !said.HasLoss {
		d.Loss = math.NaN()
	}
	return d
}

func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
