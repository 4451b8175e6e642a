package p2pnet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// openHandshakes is how many times handshakeTimeout an Open may take:
// once to resolve and dial, once for the stream.
const openHandshakes = 2

// openAttempts is how many connections Open tries if each ends as soon as it is made.
const openAttempts = 4

// opener opens streams to other processes.
type opener struct {
	*dialer
	lanes *lanes
}

// Open opens a stream as transport.Dialer says, without waiting for the other end: it
// costs no round trip if there is a connection, and refusals surface at the
// first Read; a later Write fails without saying why.
func (o *opener) Open(ctx context.Context, to transport.PeerID, speak transport.Protocol, run string) (transport.Stream, error) {
	s, err := o.open(ctx, to, speak, run, 0)
	if err != nil {
		return nil, fmt.Errorf("p2pnet: opening %s of run %q to peer %s: %w", speak, run, to, err)
	}
	return s, nil
}

// open opens a stream on a lane; 0 is the connection that Connect makes too.
func (o *opener) open(ctx context.Context, to transport.PeerID, speak transport.Protocol, run string, lane int) (*stream, error) {
	if err := checkNames(speak, run); err != nil {
		return nil, err
	}
	id, err := parsePeer(to)
	if err != nil {
		return nil, err
	}
	if id == o.id {
		return nil, transport.ErrSelf
	}
	ctx, leave, err := o.begin(ctx, openHandshakes*o.config.handshakeTimeout)
	if err != nil {
		return nil, err
	}
	defer leave()
	raw, err := o.openRaw(ctx, laneKey{id, lane})
	if err != nil {
		return nil, o.whyNot(ctx, err)
	}
	s := newStream(raw, to, speak, run, o.config.ioTimeout)
	s.answer = newAnswer(speak)
	if err := o.sayOpening(ctx, s); err != nil {
		s.Reset()
		return nil, o.whyNot(ctx, err)
	}
	return s, nil
}

// openRaw opens a raw stream on the connection that Connect makes too, or on a lane, which
// is made if need be.
func (o *opener) openRaw(ctx context.Context, to laneKey) (network.Stream, error) {
	for range openAttempts {
		conn, err := o.connection(ctx, to)
		if err != nil {
			return nil, err
		}
		o.upkeep.note(conn, usage{ours: true})
		raw, err := conn.NewStream(ctx)
		if err == nil {
			return raw, nil
		}
		if !conn.IsClosed() || gated(err) {
			return nil, notOpened(err)
		}
	}
	return nil, notOpened(network.ErrNoConn)
}

func (o *opener) connection(ctx context.Context, to laneKey) (network.Conn, error) {
	if to.lane > 0 {
		return o.lanes.connect(ctx, to)
	}
	if conn := o.upkeep.connected(to.peer); conn != nil {
		return conn, nil
	}
	return o.dial(ctx, to.peer, o.whereabouts(ctx, to.peer))
}

// notOpened classifies the error of opening a stream: a limit of this process,
// or else a connection that has just ended.
func notOpened(err error) error {
	if errors.Is(err, network.ErrResourceLimitExceeded) {
		return fmt.Errorf("this process has too many streams open, or too much Config.Limits.Memory in use: %w", err)
	}
	return notConnected(err)
}

// sayOpening sends the protocol and the run's name to the other end.
func (o *opener) sayOpening(ctx context.Context, s *stream) error {
	if err := s.raw.SetProtocol(protocol.ID(s.protocol)); err != nil {
		return notOpened(err)
	}
	stop := context.AfterFunc(ctx, s.Reset)
	if err := s.SetWriteDeadline(time.Now().Add(o.config.handshakeTimeout)); err != nil {
		return err
	}
	if _, err := s.Write(appendOpening(nil, s.protocol, s.run)); err != nil {
		stop()
		return err
	}
	if !stop() {
		return ctx.Err()
	}
	return s.SetWriteDeadline(time.Time{})
}

// OpenLane opens a stream over a further connection, as transport.Dialer says, with
// the costs and errors of Open; others are transport.ErrLane and ErrTooManyLanes. Lanes
// take the addresses that were learned of the peer in turn, beginning behind the
// one that Open's connection uses; if one does not answer within half of
// a handshake's time, the next is tried. On which interface of this machine a
// lane leaves, its routing table says.
func (o *opener) OpenLane(ctx context.Context, to transport.PeerID, speak transport.Protocol, run string, lane int) (transport.Stream, error) {
	err := transport.ErrLane
	if lane >= 1 && lane <= transport.MaxLane {
		var s *stream
		if s, err = o.open(ctx, to, speak, run, lane); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("p2pnet: opening lane %d for %s of run %q to peer %s: %w", lane, speak, run, to, err)
}
