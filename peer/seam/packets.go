package seam

import "errors"

// MaxPacket is the largest packet, in bytes: with a mark of MaxMark and what
// the transport adds it fits one datagram on every network.
const MaxPacket = 1024

// ErrNoPackets: the transport has no packets, or this process or the other takes none,
// or a packet has more than MaxPacket bytes.
var ErrNoPackets = errors.New("no packet can be sent")

// Packets are sent without a connection, and may be lost, doubled, or overtake each
// other. A transport that has none fails with ErrNoPackets. Safe for concurrent use.
type Packets interface {
	// SendPacket sends a packet to a peer of a run, to the addresses that were
	// learned of it, and does not wait. That it returns nil says nothing of whether
	// the packet arrives. The packet stays the caller's.
	SendPacket(peer PeerID, run string, packet []byte) error
	// HandlePackets hands over what arrives for a run, one packet at a time, until
	// stop, which waits for handler; so handler must not call it. The sender is
	// authenticated, its packet may be an old one that somebody sends again. Handler
	// must be quick and own nothing of the packet once it returns. A process takes
	// packets from the first call on.
	HandlePackets(run string, handler func(from PeerID, packet []byte)) (stop func(), err error)
}
