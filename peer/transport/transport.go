package transport

import (
	"context"
	"errors"
	"io"
	"time"
)

// Identity is one key pair: the peer itself. Safe for concurrent use.
type Identity interface {
	// Self is the id of the local peer.
	Self() PeerID
	// Sign signs a message with the local key.
	Sign(message []byte) ([]byte, error)
	// Verify tells whether signature is peer's signature of message. The public
	// key follows from the id alone; a malformed id verifies nothing.
	Verify(peer PeerID, message, signature []byte) bool
}

// Stream is a reliable, ordered, flow-controlled byte stream to one
// authenticated peer. One goroutine may read while another writes.
//
// A read or write past its deadline fails with an error that satisfies
// net.Error and reports Timeout; the stream may be used again with a later
// deadline. Test with errors.As, not with os.ErrDeadlineExceeded.
type Stream interface {
	io.ReadWriteCloser
	// Remote is the authenticated id of the other end.
	Remote() PeerID
	// CloseWrite ends the local side's writing; the other end reads io.EOF after
	// what was written, and may still answer. Close closes both directions
	// without waiting for the other end to have read anything.
	CloseWrite() error
	// Reset aborts both directions at once: reads and writes at both ends fail.
	// It may be called from any goroutine, any number of times.
	Reset()
	// SetReadDeadline and SetWriteDeadline bound the time of reads and writes. The zero
	// time is no bound.
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

// MaxLane is the highest number of a lane: beside the connection that Open uses,
// an exchange may use this many further ones.
const MaxLane = 7

// ErrLane: the number of a lane is not from 1 to MaxLane, or the transport has no lanes.
var ErrLane = errors.New("no lane has this number")

// Dialer opens connections and streams. Safe for concurrent use.
type Dialer interface {
	// Connect reaches a process at a join address (a transport's own address form with the
	// peer's id, or host:port) and returns the identity that it proved. A connection does
	// not mean that the process wants to speak to us: the hello protocol finds that out. At
	// the local peer's own address it may return ErrSelf; where another process has proved
	// the local peer's key it returns ErrDuplicate.
	Connect(ctx context.Context, address string) (PeerID, error)
	// Learn remembers addresses at which a peer may be reached by Open, replacing
	// those learned before.
	Learn(peer PeerID, addresses []string)
	// Open opens a stream for one protocol of one run. The context covers the
	// opening only. Refusals by the other end may surface at the first Read.
	Open(ctx context.Context, peer PeerID, protocol Protocol, run string) (Stream, error)
	// OpenLane opens a stream as Open does, over the lane-th further connection to the
	// peer, 1 to MaxLane; any other number is an ErrLane. So one exchange can use several
	// connections at once (several paths of a network, or several of a path that limits
	// each connection). The other end sees an ordinary inbound stream; the protocol must
	// say to which exchange it belongs.
	//
	// The transport makes the connection when a lane is first opened, owns it, and keeps it
	// for the next OpenLane; it closes a connection that has carried no stream for a while,
	// and replaces one that has died. Where several addresses of the peer are known, lanes
	// take them in turn. Connections counts lanes, at both ends. Either end may have lanes
	// to the other; they need not be the same connections.
	OpenLane(ctx context.Context, peer PeerID, protocol Protocol, run string, lane int) (Stream, error)
}

// Handler serves one inbound stream on a goroutine of its own. It owns the
// stream and must Close or Reset it.
type Handler func(Stream)

// Listener takes inbound streams. Safe for concurrent use.
type Listener interface {
	// Addresses are the addresses at which the local process can be joined, each
	// in a form that Connect takes. It is empty if nothing listens.
	Addresses() []string
	// JoinAddresses are Addresses with the peer's id, where the transport's addresses can
	// hold it: whoever connects by one of them need trust only the key.
	JoinAddresses() []string
	// Handle routes inbound streams of one protocol and run to handler, until stop is
	// called. Stop returns once no handler of this registration is still running, so a
	// handler must not call it; open streams must be ended by their handlers. A second
	// handler for the same protocol and run is an error.
	Handle(protocol Protocol, run string, handler Handler) (stop func(), err error)
}

// MaxPacket is the largest packet, in bytes: with a mark of MaxMark and what
// the transport adds it fits one datagram on every network.
const MaxPacket = 1024

// ErrNoPackets: the transport has no packets, or this process or the other takes none,
// or a packet has more than MaxPacket bytes.
var ErrNoPackets = errors.New("no packet can be sent")

// Packets are sent without a connection, and may be lost, doubled, or overtake each
// other. A transport that has none fails with ErrNoPackets. Safe for concurrent use.
type Packets interface {
	// SendPacket sends a packet to a peer of a run, to the addresses that were learned of
	// it, and does not wait. A nil error does not mean that the packet arrives. SendPacket
	// does not keep the packet.
	SendPacket(peer PeerID, run string, packet []byte) error
	// HandlePackets hands over what arrives for a run, one packet at a time, until stop,
	// which waits for handler; so handler must not call it. The sender is authenticated,
	// but the packet may be an old one that an attacker sends again. Handler must be quick
	// and must not keep the packet. A process takes packets from the first call on.
	HandlePackets(run string, handler func(from PeerID, packet []byte)) (stop func(), err error)
}

// Transport moves bytes between peers under one identity. Several peers of
// different runs may share one. Safe for concurrent use.
type Transport interface {
	Identity
	Dialer
	Listener
	Packets
	Topics
	// Sealed tells whether every byte of a stream is authenticated, as by TLS, so that data
	// arrives as it was sent or not at all. Peers then omit the checksums of slices.
	Sealed() bool
	// Connections is the number of open connections to other processes.
	Connections() int
	// Block is the block of addresses (about as large as one owner has) from which a peer
	// is connected; empty if not known, for example through a relay.
	Block(peer PeerID) string
	// Refused counts, by cause, what others sent and this transport refused; nil if that is
	// not counted.
	Refused() map[string]uint64
	// Close closes every connection and waits for the transport's goroutines. It
	// is idempotent.
	Close() error
}
