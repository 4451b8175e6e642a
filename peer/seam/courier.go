package seam

import "context"

// Courier is what a Membership may be able to do beyond its own interface: let
// records pass from hand to hand, ahead of gossip. Ask for it with a type assertion;
// peers of a Membership without it wait for gossip where their views differ. Safe
// for concurrent use.
type Courier interface {
	// Signed is the local member's newest record as it is spread, signature
	// included, at most 512 bytes; nil if none has been announced. The slice is not
	// the caller's.
	Signed() []byte
	// Heard takes what Signed gave another member. It reports whether that told
	// anything that was not known; Members then says so at once. Only a member that
	// is believed alive already is heard: a record makes nobody a member. An error
	// says that no honest process hands out such a record.
	Heard(peer PeerID, signed []byte) (news bool, err error)
	// Compare exchanges with a member all that both know of the membership.
	Compare(ctx context.Context, peer PeerID) error
}
