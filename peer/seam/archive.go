package seam

// Archive is what a Membership may be able to do beyond its own interface: remember
// members that are gone. Ask for it with a type assertion. Safe for concurrent use.
type Archive interface {
	// Last is the newest record heard of a member, whether it is believed alive or
	// not, and false if none is remembered. It tells a member that left, whose last
	// record and departure came together, from one that crashed.
	Last(peer PeerID) (Record, bool)
}
