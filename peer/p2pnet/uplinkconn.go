package p2pnet

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	manet "github.com/multiformats/go-multiaddr/net"
)

// over returns an upgrader whose connections send within the share; a nil share has no bound.
func (s *UplinkShare) over(u transport.Upgrader) transport.Upgrader {
	if s == nil {
		return u
	}
	return sharing{u, s}
}

// sharing is an upgrader of connections that send within a share.
type sharing struct {
	transport.Upgrader
	share *UplinkShare
}

func (s sharing) Upgrade(ctx context.Context, t transport.Transport, conn manet.Conn, dir network.Direction, p peer.ID, scope network.ConnManagementScope) (transport.CapableConn, error) {
	return s.Upgrader.Upgrade(ctx, t, s.share.limit(conn), dir, p, scope)
}

func (s sharing) UpgradeGatedMaListener(t transport.Transport, l transport.GatedMaListener) transport.Listener {
	return s.Upgrader.UpgradeGatedMaListener(t, sharingListener{l, s.share})
}

// sharingListener accepts connections that send within a share.
type sharingListener struct {
	transport.GatedMaListener
	share *UplinkShare
}

func (l sharingListener) Accept() (manet.Conn, network.ConnManagementScope, error) {
	conn, scope, err := l.GatedMaListener.Accept()
	if err != nil {
		return nil, nil, err
	}
	return l.share.limit(conn), scope, nil
}

func (s *UplinkShare) limit(conn manet.Conn) manet.Conn {
	return &sharingConn{Conn: conn, share: s, gone: make(chan struct{})}
}

// sharingConn is a connection that sends within a share.
type sharingConn struct {
	manet.Conn
	share *UplinkShare
	once  sync.Once
	gone  chan struct{}
	until atomic.Value // the deadline of writes, if one was set
}

// turnBytes is the most that a connection sends at a time before others have their turn.
const turnBytes = 16 << 10

// Write implements net.Conn. A deadline that is set while it waits for a turn counts from the next turn
// on.
func (c *sharingConn) Write(b []byte) (written int, err error) {
	for len(b) > 0 {
		part := b[:min(len(b), turnBytes)]
		deadline, _ := c.until.Load().(time.Time)
		c.share.send(len(part), c.gone, deadline) // the connection's own Write says that it is closed, or late
		n, err := c.Conn.Write(part)
		if written += n; err != nil {
			return written, err
		}
		b = b[len(part):]
	}
	return written, nil
}

// SetWriteDeadline implements net.Conn.
func (c *sharingConn) SetWriteDeadline(t time.Time) error {
	c.until.Store(t)
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *sharingConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetWriteDeadline(t), c.Conn.SetReadDeadline(t))
}

// Close implements net.Conn.
func (c *sharingConn) Close() error {
	c.once.Do(func() { close(c.gone) })
	return c.Conn.Close()
}
