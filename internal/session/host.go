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

// windowBytes is what a lane has in flight in a direction to begin with, unless the
// configuration says another number of slices. It is what a link of 200 Mbit/s and 40 ms takes.
const windowBytes = 1 << 20

// A partner whose answer to a proposal has come within nearRound loses nothing while the
// window grows to what the link takes. With it, no more slices are in flight to begin with
// than have nearBytes of values, whatever the codec: until its difference has come, a slice
// stays in a cache.
const (
	nearRound = 2 * time.Millisecond
	nearBytes = 2 << 20
)

// Host is what conversations know of the peer whose they are.
type Host struct {
	Run     string
	Layout  [32]byte
	Cut     uint64
	Replica *replica.Replica
	Ledger  *replica.Ledger
	Links   *links.Links
	// Lanes is the most streams of an exchange, and Window the slices in flight on each;
	// 0 of either is as many as fill the link.
	Lanes, Window int
	// Sealed: nobody can alter what the peer's transport carries, so slices need no
	// checksums where the partner's is sealed too.
	Sealed bool
	// Deadline is that of exchanges.
	Deadline time.Duration
	// Traits are those of the averaging machine: which transfers and words it may want.
	Traits collective.Traits
	Peer   Peer
}

// Peer is what conversations ask of their peer, as it is at that moment. Its methods may
// be called by several conversations at once, if these are driven at once.
type Peer interface {
	// Now is what the messages tell of this peer.
	Now() State
	// Member tells whether another is a member, as far as this peer knows.
	Member(topology.PeerID) bool
	// Settle takes the answer of a partner to a question about an exchange.
	Settle(partner topology.PeerID, exchange uint64, question wire.Status, answer wire.Settled)
	// Record is this peer's own, signed, for one that takes it for passive; empty if
	// there is none to be handed out.
	Record() []byte
	// Received takes a partner's record. An error says that the record is no good.
	Received(partner topology.PeerID, record wire.Record) error
}

// State is what messages tell of a peer, and whether it has a model to average.
type State struct {
	Incarnation, Steps, View uint64
	Ready                    bool
}

// opening is what this peer says when it opens an exchange or a transfer.
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

// direct are those codecs of a list, in its memory, that need nothing at the receiver.
func direct(ids []coding.ID) []coding.ID {
	return slices.DeleteFunc(ids, func(id coding.ID) bool {
		codec, known := coding.ByID(id)
		return !known || codec.Lattice != (coding.Lattice{})
	})
}

// window is the number of slices in flight on each lane of an exchange that this peer
// initiates, with a partner so far away: to begin with, whatever the codec, about as many
// bytes, and at most.
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

// lanes is the number of streams that this peer allows an exchange.
func (l *Host) lanes() int { return cmp.Or(l.Lanes, links.WideLanes) }

// granted is the number of slices in flight that this peer allows its partners, who know
// what they code them with.
func (l *Host) granted() int {
	if l.Window > 0 {
		return l.Window
	}
	return replica.MaxWindow
}
