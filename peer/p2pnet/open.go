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

// Open opens a stream as seam.Dialer says, without waiting for the other end: it
// costs no round trip if there is a connection, and refusals surface at the
// first Read; a later Write fails without saying why.
func (t *Transport) Open(ctx context.Context, to seam.PeerID, speak seam.Protocol, run string) (seam.Stream, error) {
	s, err := t.open(ctx, to, speak, run)
	if err != nil {
		return nil, fmt.Errorf("p2pnet: opening %s of run %q to peer %s: %w", speak, run, to, err)
	}
	return s, nil
}

func (t *Transport) open(ctx context.Context, to seam.PeerID, speak seam.Protocol, run string) (*stream, error) {
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
	if err := t.approach(ctx, id); err != nil {
		return nil, t.whyNot(ctx, err)
	}
	raw, err := t.swarm.NewStream(network.WithNoDial(ctx, "connected a moment ago"), id)
	if err != nil {
		return nil, t.whyNot(ctx, notOpened(err))
	}
	s := newStream(raw, to, speak, run, t.config.IOTimeout)
	s.answer = newAnswer(speak)
	if err := t.sayOpening(ctx, s); err != nil {
		s.Reset()
		return nil, t.whyNot(ctx, err)
	}
	return s, nil
}

// approach makes sure of a connection.
func (t *Transport) approach(ctx context.Context, id peer.ID) error {
	if t.swarm.Connectedness(id) == network.Connected {
		return nil
	}
	return t.dial(ctx, id, t.whereabouts(ctx, id))
}

// notOpened sorts the reasons for which a connection gives no stream: limits of
// this process, or else a connection that has just ended.
func notOpened(err error) error {
	if errors.Is(err, network.ErrResourceLimitExceeded) {
		return fmt.Errorf("this process has too many streams open, or too much Config.Memory in use: %w", err)
	}
	return unreachable(err)
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
