package transport

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Record is a member's description of itself, signed with its key. Adapters carry and
// verify it; only package peer interprets its numbers.
type Record struct {
	// Peer is the member; the signature must be its own.
	Peer PeerID
	// Run is the run the member takes part in; at most MaxRunName bytes.
	Run string
	// Incarnation counts the lives of a member, at most MaxIncarnation. A restart is a
	// new one.
	Incarnation uint64
	// Sequence grows with each record of one incarnation; a record that does not
	// exceed (Incarnation, Sequence) of the one known is ignored.
	Sequence uint64
	// Role is the member's place in the overlay, as package topology numbers it.
	Role uint8
	// Flags are bits as package internal/flock defines them, FlagUnreachable aside.
	Flags uint8
	// Steps is the number of gradient steps taken in this incarnation.
	Steps uint64
	// Head is the number of gradient steps that lay behind the member's model when
	// it took its first: 0 for a founder, its state server's count for a latecomer.
	Head uint64
	// Rows is how many rows the member gives to others that train; 0 if it gives none.
	Rows uint64
	// Place is where in the network the member is, as far as it says so.
	Place Place
	// Stage is the part that the member trains of a model larger than one peer, from 1; 0 if it trains none, or the whole.
	Stage uint8
	// Addresses are where the member can be reached; at most MaxAddresses, each as
	// CheckAddress wants it.
	Addresses []string
}

// FlagUnreachable is the bit of Record.Flags set by a member that others cannot dial.
const FlagUnreachable = 1 << 2

// Age is the number of gradient steps that lie behind the member's model now.
func (r Record) Age() uint64 {
	if r.Steps > math.MaxUint64-r.Head {
		return math.MaxUint64 // no real model is as old, but an overflow must not look young
	}
	return r.Head + r.Steps
}

// Newer tells whether r supersedes old.
func (r Record) Newer(old Record) bool {
	if r.Incarnation != old.Incarnation {
		return r.Incarnation > old.Incarnation
	}
	return r.Sequence > old.Sequence
}

// Bounds of a record. With Ed25519 signatures a record within them fits the 512
// bytes that memberlist allows.
const (
	MaxRunName     = 64
	MaxAddresses   = 4
	MaxAddressSize = 64
	// MaxIncarnation is more than restarts can reach: a record with a higher one is
	// rejected, so that no single record can use an identity up.
	MaxIncarnation = 1 << 32
)

// CheckAddress returns an error if a text cannot be an address in a record. Addresses are
// written to logs and files, where a space or the end of a line would start another entry.
func CheckAddress(address string) error {
	switch {
	case len(address) > MaxAddressSize:
		return fmt.Errorf("the address %q has %d bytes: shorten it to %d", address, len(address), MaxAddressSize)
	case !utf8.ValidString(address):
		return fmt.Errorf("the address %q is not UTF-8", address)
	case strings.ContainsFunc(address, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }):
		return fmt.Errorf("the address %q has a space or what cannot be printed", address)
	}
	return nil
}

// Members is the current membership as this process sees it. Safe for
// concurrent use.
type Members interface {
	// Members returns the newest verified record of each member that is believed
	// alive, the local one included once announced, in no particular order. The
	// slice is the caller's.
	Members() []Record
	// Changed signals, at most once between two receives, that Members may answer
	// otherwise than before.
	Changed() <-chan struct{}
	// Last is the newest record received of a member, alive or not, and false if none is
	// remembered. With it a member that left, whose last record and departure came together,
	// can be told from one that crashed. For the local peer it is the newest record of another
	// life, which may be another process with the same key, unless that life has left.
	Last(peer PeerID) (Record, bool)
}

// Courier lets two peers exchange records directly, ahead of gossip. If Signed is always
// nil, peers whose views differ wait for gossip. Safe for concurrent use.
type Courier interface {
	// Signed is the local member's newest record as gossip carries it, signature included,
	// at most 512 bytes; nil if none has been announced, or records cannot be exchanged
	// directly. The caller must not change the slice.
	Signed() []byte
	// Received takes what Signed returned at another member. news tells whether the record
	// was new; Members then includes it at once. A record is taken only of a member that is
	// already believed alive: it makes nobody a member. An error means that no honest
	// process sends such a record.
	Received(peer PeerID, signed []byte) (news bool, err error)
	// Compare exchanges with a member everything that both know about the membership.
	Compare(ctx context.Context, peer PeerID) error
}

// Membership finds the members of one run and announces the local one to them. Safe for
// concurrent use.
type Membership interface {
	Members
	Courier
	// Join contacts members and merges what they know. It fails only if none of
	// them answered. Once a peer has been joined, the membership keeps returning
	// to it and to others it has met, so that a partition heals.
	Join(ctx context.Context, peers ...PeerID) error
	// Announce signs and spreads the local member's record. Peer and Run must be
	// the transport's and the membership's own; Sequence is set by the adapter. An
	// *OldIncarnationError tells which incarnation to take instead.
	Announce(record Record) error
	// Refused counts, by cause, messages about members that were rejected; nil if that is
	// not counted.
	Refused() map[string]uint64
	// Close leaves the membership gracefully, within a bounded time, and waits
	// for every goroutine. It is idempotent. It does not close the transport.
	Close() error
}

// ErrNotAdmitted: one of the two processes does not let the other take part. It may
// surface at the first Read.
var ErrNotAdmitted = errors.New("not admitted")

const (
	// MinRunKey and MaxRunKey bound the bytes of a run's key. Guesses can be tested against
	// what a member shows of the key, so the key must be hard to guess.
	MinRunKey = 16
	MaxRunKey = 1024
)

// MaxMark is the most bytes of a member's mark.
const MaxMark = 32

// Admission decides who takes part in a run. An adapter without one admits everybody. An
// adapter may call it while it holds locks, so its methods return at once and do not call
// the adapter. Safe for concurrent use.
type Admission interface {
	// Mark is the proof that the local member sends with its record to members that demand
	// more than an identity: at most MaxMark bytes, nil if there is none. The caller must
	// not change the slice.
	Mark() []byte
	// Admit returns nil if a peer whose identity is proven may take part with this mark,
	// and otherwise an ErrNotAdmitted that says why. The answer may change at any time.
	Admit(peer PeerID, mark []byte) error
}
