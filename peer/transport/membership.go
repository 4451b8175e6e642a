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

// Record is what a member says of itself, signed with its key. Adapters carry
// and verify it; its numbers mean something to package peer only.
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
	// Addresses are where the member can be reached; at most MaxAddresses, each as
	// CheckAddress wants it.
	Addresses []string
}

// FlagUnreachable is the bit of Record.Flags that a member sets which others cannot
// dial.
const FlagUnreachable = 1 << 2

// Age is the number of gradient steps that lie behind the member's model now.
func (r Record) Age() uint64 {
	if r.Steps > math.MaxUint64-r.Head {
		return math.MaxUint64 // nobody's, but it must not pass for a young one
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
	// MaxIncarnation is beyond what restarts reach: a record with a higher one is
	// nobody's, so that no number can use an identity up.
	MaxIncarnation = 1 << 32
)

// CheckAddress tells what keeps a text from being an address in a record: addresses go
// into logs and files, where a space or the end of a line would begin something else.
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
	// Last is the newest record heard of a member, whether it is believed alive or
	// not, and false if none is remembered. It tells a member that left, whose last
	// record and departure came together, from one that crashed. Of the local peer it is the
	// newest of another life, which may be another process with its key, unless that has left.
	Last(peer PeerID) (Record, bool)
}

// Courier lets records pass from hand to hand, ahead of gossip. Where Signed is always
// nil, peers whose views differ wait for gossip. Safe for concurrent use.
type Courier interface {
	// Signed is the local member's newest record as it is spread, signature
	// included, at most 512 bytes; nil if none has been announced, or records do not
	// pass from hand to hand. The slice is not the caller's.
	Signed() []byte
	// Received takes what Signed gave another member. It reports whether that told
	// anything that was not known; Members then says so at once. Only a member that
	// is believed alive already is heard: a record makes nobody a member. An error
	// says that no honest process hands out such a record.
	Received(peer PeerID, signed []byte) (news bool, err error)
	// Compare exchanges with a member all that both know of the membership.
	Compare(ctx context.Context, peer PeerID) error
}

// Membership finds the members of one run and tells them of the local one. Safe
// for concurrent use.
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
	// Refused counts, by cause, what others said of members and was not heard; nil if
	// that is not counted.
	Refused() map[string]uint64
	// Close leaves the membership gracefully, within a bounded time, and waits
	// for every goroutine. It is idempotent. It does not close the transport.
	Close() error
}

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
