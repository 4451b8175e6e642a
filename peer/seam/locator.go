package seam

// Locator is what a Transport may be able to do beyond its own interface: tell from where
// a peer comes. Ask for it with a type assertion. Safe for concurrent use.
type Locator interface {
	// Block is the block of addresses, about as large as one owner has, of an open
	// connection to a peer; empty if that is not known, as through a relay.
	Block(peer PeerID) string
}
