package session

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// windowBytes is the initial number of bytes in flight on a lane in each direction, unless the
// configuration sets a number of slices. It fills a link of 200 Mbit/s and 40 ms.
const windowBytes = 1 << 20

// With a partner that answers a proposal within nearRound, nothing is lost while the window
// grows to fill the link. So it begins with slices of at most nearBytes of values in
// flight, whatever the codec: a slice then stays in a cache until its difference arrives.
const (
	nearRound = 2 * time.Millisecond
	nearBytes = 2 << 20
)

// Host is what conversations know about their own peer.
type Host struct {
	Run     string
	Layout  [32]byte
	Cut     uint64
	Replica *replica.Replica
	Ledger  *replica.Ledger
	Links   *links.Links
	// Lanes is the most streams of an exchange, and Window the slices in flight on each; 0
	// of either means as many as fill the link.
	Lanes, Window int
	// Sealed: the peer's transport protects against changes on the way, so slices need no
	// checksums if the partner's transport does too.
	Sealed bool
	// Deadline bounds an exchange.
	Deadline time.Duration
	// Traits are those of the averaging machine: which transfers and messages it uses.
	Traits collective.Traits
	Peer   Peer
}

// Peer gives conversations the current state of their peer. If several conversations are
// driven at once, its methods are called at once.
type Peer interface {
	// Now is the state of this peer that messages carry.
	Now() State
	// Member tells whether another is a member, as far as this peer knows.
	Member(topology.PeerID) bool
	// Settle takes the answer of a partner to a question about an exchange.
	Settle(partner topology.PeerID, exchange uint64, question wire.Status, answer wire.Settled)
	// Record is this peer's own signed record, for a partner that wrongly takes it for
	// passive; empty if there is none to send.
	Record() []byte
	// Received takes a partner's record. An error means that the record is invalid.
	Received(partner topology.PeerID, record wire.Record) error
}

// State is the state of a peer that messages carry, and whether it has a model to average.
type State struct {
	Incarnation, Steps, View uint64
	Progress                 float64 // of the run, 0 to 1
	Ready                    bool
}

// opening is the first part of this peer's PROPOSE or OFFER.
func (l *Host) opening(codecs []uint8) wire.Opening {
	state := l.Peer.Now()
	return wire.Opening{
		Run: l.Run, Layout: l.Layout, View: state.View, Incarnation: state.Incarnation, Steps: state.Steps,
		SliceLen: uint32(l.Replica.SliceLen()), Cut: l.Cut, Codecs: codecs,
	}
}

// examine finds what makes an exchange impossible, whatever the averaging machine thinks of
// it, and which of the codecs offered are known here, in the memory of into. The reason is 0 if nothing does.
func (l *Host) examine(now time.Duration, partner topology.PeerID, m *wire.Opening, into []coding.ID) (codecs []coding.ID, reason wire.Reason, detail string) {
	if reason, detail = wire.Differs(l.Run, l.Layout, m.Run, m.Layout); reason != 0 {
		return into, reason, detail
	}
	if left := l.Links.Quarantined(partner, now); left > 0 {
		return into, wire.ReasonQuarantine, fmt.Sprintf("for another %s", left.Round(time.Second))
	}
	switch {
	case int(m.SliceLen) != l.Replica.SliceLen():
		return into, wire.ReasonLayout, fmt.Sprintf("slices here have %d values, yours %d: set Exchange.SliceLen alike", l.Replica.SliceLen(), m.SliceLen)
	case m.Cut != l.Cut:
		return into, wire.ReasonLayout, "slices here begin elsewhere: the releases differ in how they cut a model"
	case !l.Peer.Now().Ready:
		return into, wire.ReasonBusy, "still copying the model"
	}
	if into = links.Known(into, m.Codecs); len(into) == 0 {
		return into, wire.ReasonCodec, fmt.Sprintf("known here: %v", coding.Names())
	}
	return into, 0, ""
}

// unsummed tells whether slices go without checksums, given what the partner's PROPOSE or
// ACCEPT declares.
func (l *Host) unsummed(h wire.Header) bool { return l.Sealed && h.Flags&wire.FlagSealed != 0 }

// direct are the codecs of a list, in its memory, that need no model at the receiver.
func direct(ids []coding.ID) []coding.ID {
	return slices.DeleteFunc(ids, func(id coding.ID) bool {
		codec, known := coding.ByID(id)
		return !known || codec.Lattice != (coding.Lattice{})
	})
}

// window is the number of slices in flight on each lane of an exchange that this peer
// initiates, with a partner at this round trip time: first at the beginning, for about the
// same number of bytes with every codec, and most at most.
func (l *Host) window(plan coding.Plan, round time.Duration) (first, most int) {
	if l.Window > 0 {
		return l.Window, l.Window
	}
	bits, values := 0.0, 0
	for i, layer := range l.Replica.JointLayers() {
		bits += plan.Bits(i) * float64(layer.Len)
		values += layer.Len
	}
	slice := bits / float64(max(values, 1)) * float64(l.Replica.SliceLen()) / 8
	first = int(windowBytes / max(slice, tensor.ValueSize))
	if round <= nearRound {
		first = min(first, nearBytes/(tensor.ValueSize*l.Replica.SliceLen()))
	}
	return min(max(first, 1), replica.MaxWindow), replica.MaxWindow
}

// lanes is the most streams that this peer allows for an exchange.
func (l *Host) lanes() int { return cmp.Or(l.Lanes, links.WideLanes) }

// granted is the number of slices in flight that this peer allows its partners, which
// choose the codec.
func (l *Host) granted() int {
	if l.Window > 0 {
		return l.Window
	}
	return replica.MaxWindow
}
