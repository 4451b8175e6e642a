package p2pnet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// openHandshakes is how many Config.HandshakeTimeout an Open may take: resolving
// and dialling, then the stream.
const openHandshakes = 2

// openAttempts is how many connections that end at once Open bears with.
const openAttempts = 4

// Open opens a stream as seam.Dialer says, without waiting for the other end: it
// costs no round trip if there is a connection, and refusals surface at the
// first Read; a later Write fails without saying why.
func (t *Transport) Open(ctx context.Context, to seam.PeerID, speak seam.Protocol, run string) (seam.Stream, error) {
	s, err := t.open(ctx, to, speak, run, 0)
	if err != nil {
		return nil, fmt.Errorf("p2pnet: opening %s of run %q to peer %s: %w", speak, run, to, err)
	}
	return s, nil
}

// open opens a stream on a lane; 0 is the connection that Connect makes too.
func (t *Transport) open(ctx context.Context, to seam.PeerID, speak seam.Protocol, run string, lane int) (*stream, error) {
	if err := checkNames(speak, run); err != nil {
		return nil, err
	}
	id, err := parsePeer(to)
	if err != nil {
		return nil, err
	}
	if id == t.id {
		return nil, ErrSelf
	}
	ctx, leave, err := t.begin(ctx, openHandshakes*t.config.HandshakeTimeout)
	if err != nil {
		return nil, err
	}
	defer leave()
	openRaw := t.openLane
	if lane == 0 {
		openRaw = t.openFirst
	}
	raw, err := openRaw(ctx, laneKey{id, lane})
	if err != nil {
		return nil, t.whyNot(ctx, err)
	}
	s := newStream(raw, to, speak, run, t.config.IOTimeout)
	s.answer = newAnswer(speak)
	if err := t.sayOpening(ctx, s); err != nil {
		s.Reset()
		return nil, t.whyNot(ctx, err)
	}
	return s, nil
}

// openFirst opens a raw stream on the connection that is no lane of this process,
// which is made if need be.
func (t *Transport) openFirst(ctx context.Context, to laneKey) (network.Stream, error) {
	for range openAttempts {
		conn := t.connected(to.peer)
		if conn == nil {
			dialled, err := t.dial(ctx, to.peer, t.whereabouts(ctx, to.peer))
			if err != nil {
				return nil, err
			}
			conn = dialled
		}
		if conn == nil {
			continue // it has ended already
		}
		t.upkeep.open(conn)
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

// connected returns the oldest connection to a peer that was not dialled as a
// lane here, and that is not about to be closed as the second of two. The other end
// may have dialled it as a lane, but then it is the younger one as a rule, and not
// closed under our streams.
func (t *Transport) connected(id peer.ID) network.Conn {
	conns := t.swarm.ConnsToPeer(id)
	second := t.second(id, conns)
	for _, c := range conns {
		if !c.IsClosed() && c != second {
			return c
		}
	}
	return nil
}

// notOpened sorts the reasons for which a connection gives no stream: limits of
// this process, or else a connection that has just ended.
func notOpened(err error) error {
	if errors.Is(err, network.ErrResourceLimitExceeded) {
		return fmt.Errorf("this process has too many streams open, or too much Config.Limits.Memory in use: %w", err)
	}
	return notConnected(err)
}

// sayOpening names protocol and run to the other end.
func (t *Transport) sayOpening(ctx context.Context, s *stream) error {
	if err := s.raw.SetProtocol(protocol.ID(s.protocol)); err != nil {
		return notOpened(err)
	}
	stop := context.AfterFunc(ctx, s.Reset)
	if err := s.SetWriteDeadline(time.Now().Add(t.config.HandshakeTimeout)); err != nil {
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
