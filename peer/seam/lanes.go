package seam

import (
	"context"
	"errors"
)

// MaxLane is the highest number of a lane: beside the connection that Open uses,
// an exchange may use this many further ones.
const MaxLane = 7

// ErrLane: the number of a lane is not from 1 to MaxLane.
var ErrLane = errors.New("no lane has this number")

// LaneDialer is what a Transport may be able to do beyond its own interface: keep
// further connections to a peer, so that one exchange can use several at once
// (several paths of a network, or several of a path that limits each connection).
// Ask for it with a type assertion; a Transport without it has the one connection
// of Open. Safe for concurrent use.
type LaneDialer interface {
	// OpenLane opens a stream as Open does, over the lane-th further connection to
	// the peer, 1 to MaxLane; any other number is an ErrLane. The other end sees an
	// ordinary inbound stream: which exchange it belongs to, the protocol has to
	// say.
	//
	// The transport makes the connection when a lane is first opened, owns it, and
	// keeps it for the next OpenLane; it closes one that has carried no stream for
	// a while, and one that has died is made anew. Where several addresses of the
	// peer are known, lanes take them in turn. Connections counts lanes, at both
	// ends. Either end may have lanes to the other; they need not be the same
	// connections.
	OpenLane(ctx context.Context, peer PeerID, protocol Protocol, run string, lane int) (Stream, error)
}
