package p2pnet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"

	"github.com/seed-97356399/murmuration/peer/seam"
)

const (
	// maxLanes is how many lanes to all peers together are kept. Beyond it the one
	// that has been idle longest gives way.
	maxLanes = 256
	// laneIdle is how long a lane is kept without a stream. It is closed within one
	// and a half times that.
	laneIdle = time.Minute
)

// ErrTooManyLanes: this process keeps as many lanes as it is willing to, and all
// of them carry streams.
var ErrTooManyLanes = fmt.Errorf("all of the %d lanes that a process may keep are in use", maxLanes)

var _ seam.LaneDialer = (*Transport)(nil)

// OpenLane opens a stream over a further connection, as seam.LaneDialer says, with
// the costs and errors of Open; others are seam.ErrLane and ErrTooManyLanes. Lanes
// take the addresses that were learned of the peer in turn, beginning behind the
// one that Open's connection uses; if one does not answer within half of
// Config.HandshakeTimeout, the next is tried. On which interface of this machine a
// lane leaves, its routing table says.
func (t *Transport) OpenLane(ctx context.Context, to seam.PeerID, speak seam.Protocol, run string, lane int) (seam.Stream, error) {
	err := seam.ErrLane
	if lane >= 1 && lane <= seam.MaxLane {
		var s *stream
		if s, err = t.open(ctx, to, speak, run, lane); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("p2pnet: opening lane %d for %s of run %q to peer %s: %w", lane, speak, run, to, err)
}

// openLane opens a raw stream on a lane, which is dialled if need be.
func (t *Transport) openLane(ctx context.Context, to laneKey) (network.Stream, error) {
	l, err := t.lanes.enter(t, to)
	if err != nil {
		return nil, err
	}
	defer t.lanes.leave(l)
	select {
	case l.dialling <- struct{}{}:
		defer func() { <-l.dialling }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l.conn == nil || l.conn.IsClosed() {
		if l.conn, err = t.dialLane(ctx, to); err != nil {
			return nil, err
		}
	}
	raw, err := l.conn.NewStream(ctx)
	if err != nil {
		return nil, notOpened(err)
	}
	return raw, nil
}

// lanes are the further connections that this process has dialled.
//
// libp2p's swarm keeps to one connection when it dials a peer. So lane i is a swarm
// of its own, which keeps to one too: all that a connection needs (accounting,
// gating, serving streams that the other end opens on it) is the library's, and the
// host's transport and stream handler are shared. A host for each lane would
// announce itself to the peer as a process without addresses; a connection dialled
// outside any swarm would have to do all that by hand.
type lanes struct {
	idle time.Duration // laneIdle

	mu     sync.Mutex
	closed bool
	swarms [1 + seam.MaxLane]*swarm.Swarm // made when first used; [0] is none
	table  map[laneKey]*lane
	sweep  *time.Timer // set while the table holds anything
	silent silent
}

type laneKey struct {
	peer peer.ID
	lane int
}

// lane is one connection, or the wish for it.
type lane struct {
	key      laneKey
	users    int           // OpenLane calls under way; guarded by lanes.mu
	seen     time.Time     // when it was last in use; guarded by lanes.mu
	dialling chan struct{} // guards conn
	conn     network.Conn
}

// enter returns the lane of a key, which is kept until leave.
func (l *lanes) enter(t *Transport, key laneKey) (*lane, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, seam.ErrClosed
	}
	found := l.table[key]
	if found == nil {
		if len(l.table) >= maxLanes && !l.evict() {
			return nil, ErrTooManyLanes
		}
		found = &lane{key: key, dialling: make(chan struct{}, 1)}
		if l.table == nil {
			l.table = make(map[laneKey]*lane)
		}
		l.table[key] = found
	}
	if l.sweep == nil {
		l.sweep = time.AfterFunc(l.idle/2, func() { t.sweepLanes() })
	}
	found.users++
	return found, nil
}

func (l *lanes) leave(one *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one.users--
	one.seen = time.Now()
}

// inUse tells whether a lane carries a stream, in either direction, or is about to.
func (l *lanes) inUse(one *lane) bool {
	return one.users > 0 || (one.conn != nil && !one.conn.IsClosed() && one.conn.Stat().NumStreams > 0)
}

// evict closes the lane that has been idle longest, if one is.
func (l *lanes) evict() bool {
	var oldest *lane
	for _, one := range l.table {
		if !l.inUse(one) && (oldest == nil || one.seen.Before(oldest.seen)) {
			oldest = one
		}
	}
	if oldest != nil {
		l.drop(oldest)
	}
	return oldest != nil
}

// drop closes a lane that is not in use. There is nothing to be done about a
// connection that cannot be closed properly.
func (l *lanes) drop(one *lane) {
	delete(l.table, one.key)
	if one.conn != nil {
		_ = one.conn.Close()
	}
}

// sweepLanes closes what has been idle for too long, and runs again as long as
// there are lanes.
func (t *Transport) sweepLanes() {
	if !t.gate.enter() {
		return
	}
	defer t.gate.leave()
	l := &t.lanes
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, one := range l.table {
		switch {
		case l.inUse(one):
			one.seen = now
		case now.Sub(one.seen) >= l.idle:
			l.drop(one)
		}
	}
	if len(l.table) == 0 || l.closed {
		l.sweep = nil
		return
	}
	l.sweep.Reset(l.idle / 2)
}

// connections counts the lanes that are up.
func (l *lanes) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, s := range l.swarms {
		if s != nil {
			n += len(s.Conns())
		}
	}
	return n
}

// close closes every lane and waits for the swarms' goroutines.
func (l *lanes) close() error {
	l.mu.Lock()
	l.closed = true
	if l.sweep != nil {
		l.sweep.Stop()
	}
	swarms := l.swarms
	l.mu.Unlock()
	var faults []error
	for _, s := range swarms {
		if s != nil {
			faults = append(faults, s.Close(), s.Peerstore().Close())
		}
	}
	return errors.Join(faults...)
}
