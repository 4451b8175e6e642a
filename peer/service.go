package peer

import (
	"context"
	"fmt"

	"github.com/seed-97356399/murmuration/internal/counters"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Service is a protocol that members speak beside those of their nodes, such as that of package rows. Its functions
// are safe for concurrent use. What goes over its streams counts among the bytes of the node.
type Service struct {
	// Open opens a stream to another member.
	Open func(ctx context.Context, to transport.PeerID) (transport.Stream, error)
	// Records are those of the other members, by id, and Holds has the node's own say that it gives so many rows.
	Records func() []transport.Record
	Holds   func(rows uint64)
	// Close ends the service and waits for its streams. It may be called again.
	Close func()
}

// Serve has a node serve a protocol until Close, or until the node closes. Answer gets the streams that other members open,
// each on a goroutine of its own, and closes or resets them; its context ends with the service. Who is no member is refused.
// Without answer the node opens streams only, and another service may have the same protocol.
func Serve(n *Node, protocol transport.Protocol, answer func(context.Context, transport.Stream)) (*Service, error) {
	ctx, end := context.WithCancel(n.life.Working)
	handler := func(raw transport.Stream) {
		stream := counters.Stream{Stream: raw, Counters: n.counters}
		if n.flock.Here(stream.Remote()) {
			answer(ctx, stream)
			return
		}
		var refused framed.Stream
		refused.Begin(stream, n.network.fixed.stall)
		refused.Refuse(0, wire.ReasonNotMember, "")
	}
	stop, err := func() {}, error(nil)
	if answer != nil {
		stop, err = n.net.transport.Handle(protocol, n.network.Run, handler)
	}
	ended := make(chan struct{})
	if err == nil && !n.life.Tasks.Spawn(func() {
		defer close(ended)
		select {
		case <-n.life.Closing:
		case <-ctx.Done():
		}
		end()
		stop()
	}) {
		stop()
		err = ErrClosed
	}
	if err != nil {
		end()
		return nil, fmt.Errorf("serving %s: %w", protocol, err)
	}
	open := func(ctx context.Context, to transport.PeerID) (transport.Stream, error) {
		stream, err := n.net.transport.Open(ctx, to, protocol, n.network.Run)
		return counters.Stream{Stream: stream, Counters: n.counters}, err
	}
	holds := func(rows uint64) { n.flock.SetRows(rows); n.inbox.Corrected() }
	return &Service{Open: open, Records: n.flock.Records, Holds: holds, Close: func() { end(); <-ended }}, nil
}
