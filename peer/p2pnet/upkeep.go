package p2pnet

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// A process keeps one connection with each peer that it has to do with, lanes
// aside. libp2p would keep two where two peers dial each other at once, as members
// do that hear of each other by the same news, and would keep for ever what is used
// no more.

// secondLooks is the time between two looks at a second connection that is still in
// use.
const secondLooks = 200 * time.Millisecond

// youth is how long a connection counts as young.
const youth = 2 * time.Second

// upkeep knows when connections were last used, and which the other end takes for
// the one that is no lane. libp2p tells it what has ended.
type upkeep struct {
	network.NoopNotifiee
	*node
	lanes *lanes
	keeps func(peer.ID) bool // whether the connection with a peer keeps somebody reachable
	two   chan struct{}      // capacity 1: a peer may have two
	ended chan struct{}      // closed when tend has returned

	mu    sync.Mutex
	conns map[network.Conn]usage
}

type usage struct {
	last time.Time
	// first: the other end has dialled it, and not as a lane.
	first bool
	// ours: this end has opened a stream on it; theirs: the other has.
	ours, theirs bool
}

func newUpkeep(n *node) *upkeep {
	return &upkeep{node: n, two: make(chan struct{}, 1), ended: make(chan struct{}), conns: make(map[network.Conn]usage)}
}

func (u *upkeep) use(c network.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	of := u.conns[c]
	of.last = time.Now()
	u.conns[c] = of
}

func (u *upkeep) open(c network.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	of := u.conns[c]
	if !of.ours && c.Stat().Direction == network.DirInbound {
		u.look()
	}
	of.last, of.ours = time.Now(), true
	u.conns[c] = of
}

// look has tend look for second connections.
func (u *upkeep) look() {
	select {
	case u.two <- struct{}{}:
	default:
	}
}

// carry notes that the other end has opened a stream on a connection. What is said
// before an exchange, and beside it, is never said on a lane.
func (u *upkeep) carry(c network.Conn, protocol seam.Protocol) {
	u.mu.Lock()
	defer u.mu.Unlock()
	of := u.conns[c]
	of.last, of.theirs = time.Now(), true
	if !of.first && c.Stat().Direction == network.DirInbound && (protocol == seam.ProtocolSwim || protocol == seam.ProtocolHello) {
		of.first = true
		u.look()
	}
	u.conns[c] = of
}

func (u *upkeep) of(c network.Conn) usage {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.conns[c]
}

func (u *upkeep) Connected(_ network.Network, c network.Conn) { u.use(c) }

func (u *upkeep) Disconnected(_ network.Network, c network.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.conns, c)
}

// tend closes second connections and idle ones until the transport ends.
func (u *upkeep) tend() {
	defer close(u.ended)
	idle := time.NewTicker(u.config.Limits.Idle / 2)
	defer idle.Stop()
	seconds := time.NewTimer(0)
	defer seconds.Stop()
	for {
		select {
		case <-u.ending.Done():
			return
		case <-idle.C:
			u.closeIdle(time.Now())
			u.lanes.closeIdle(time.Now())
		case <-u.two:
			seconds.Reset(secondLooks)
		case <-seconds.C:
			if u.closeSeconds() {
				seconds.Reset(secondLooks)
			}
		}
	}
}

// second finds the connection to do without, if two peers have dialled each other
// at once: both ends choose that of the peer with the greater id.
func (u *upkeep) second(id peer.ID, conns []network.Conn) network.Conn {
	if len(conns) < 2 {
		return nil
	}
	var in, out network.Conn
	for _, c := range conns {
		switch {
		case c.IsClosed() || isCircuit(c.RemoteMultiaddr()):
		case c.Stat().Direction == network.DirOutbound && out == nil:
			out = c
		case c.Stat().Direction == network.DirInbound && in == nil && u.of(c).first:
			in = c
		}
	}
	switch {
	case out != nil && in == nil && u.crossed(conns) == out && time.Since(out.Stat().Opened) >= youth &&
		(u.id > id || !u.of(out).theirs): // else it is for the other end to close its own
		return out
	case in == nil || out == nil:
		return nil
	case u.id > id, u.unused(out) && time.Since(out.Stat().Opened) >= youth:
		return out
	}
	return in
}

// unused tells whether this process has dialled a connection and opened no stream on it.
// The other end cannot know that it is no lane, so it is for this end to close, once
// whatever it was dialled for has found another way.
func (u *upkeep) unused(c network.Conn) bool {
	return c.Stat().Direction == network.DirOutbound && !u.of(c).ours
}

// crossed finds a connection that this process has dialled and opened no stream on, while
// it speaks on one that the other end has dialled. The other end may do the same the other
// way round, and never learn that the connection it has dialled is taken for the first.
func (u *upkeep) crossed(conns []network.Conn) (out network.Conn) {
	spoken := false
	for _, c := range conns {
		switch {
		case c.IsClosed() || isCircuit(c.RemoteMultiaddr()):
		case c.Stat().Direction == network.DirInbound:
			spoken = spoken || u.of(c).ours
		case out == nil && u.unused(c):
			out = c
		}
	}
	if !spoken {
		return nil
	}
	return out
}

// closeSeconds closes those that this process dialled and that nothing but packets
// of the membership pass on, which are sent again. It reports whether one is left.
func (u *upkeep) closeSeconds() (left bool) {
	for _, id := range u.swarm.Peers() {
		conns := u.swarm.ConnsToPeer(id)
		c := u.second(id, conns)
		switch {
		case c == nil:
			left = left || u.crossed(conns) != nil
		case c.Stat().Direction == network.DirInbound:
			left = left || slices.ContainsFunc(conns, u.unused)
		case carries(c, func(p seam.Protocol) bool { return p != seam.ProtocolSwim }):
			left = true
		default:
			_ = c.Close()
		}
	}
	return left
}

func (u *upkeep) closeIdle(now time.Time) {
	for _, c := range u.swarm.Conns() {
		if carries(c, func(seam.Protocol) bool { return true }) || u.keeps(c.RemotePeer()) {
			u.use(c)
			continue
		}
		if last := u.of(c).last; !last.IsZero() && now.Sub(last) >= u.config.Limits.Idle {
			_ = c.Close()
		}
	}
}

// libraryProtocols begin the names of what libp2p's own services keep open for as
// long as there is a connection.
var libraryProtocols = [...]string{"/ipfs/", "/meshsub/", "/floodsub/"}

// carries tells whether a connection has a stream of a protocol that counts.
func carries(c network.Conn, counts func(seam.Protocol) bool) bool {
	for _, s := range c.GetStreams() {
		own := true
		for _, prefix := range libraryProtocols {
			own = own && !strings.HasPrefix(string(s.Protocol()), prefix)
		}
		if own && counts(seam.Protocol(s.Protocol())) {
			return true
		}
	}
	return false
}

// connections is the number of open connections. One that is about to be closed, because
// two peers have dialled each other at once, does not count, nor does one that came
// beside another moments ago, which may be such a one.
func (u *upkeep) connections() (n int) {
	for _, id := range u.swarm.Peers() {
		conns := u.swarm.ConnsToPeer(id)
		n += len(conns)
		if u.second(id, conns) != nil || besideAnother(conns) {
			n--
		}
	}
	return n
}

// besideAnother tells whether one of several connections, dialled from either end,
// is young.
func besideAnother(conns []network.Conn) bool {
	in := slices.ContainsFunc(conns, func(c network.Conn) bool { return c.Stat().Direction == network.DirInbound })
	out := slices.ContainsFunc(conns, func(c network.Conn) bool { return c.Stat().Direction == network.DirOutbound })
	young := slices.ContainsFunc(conns, func(c network.Conn) bool { return time.Since(c.Stat().Opened) < youth })
	return in && out && young
}

// connected returns the oldest connection to a peer that was not dialled as a
// lane here, and that is not about to be closed as the second of two. The other end
// may have dialled it as a lane, but then it is the younger one as a rule, and not
// closed under our streams.
func (u *upkeep) connected(id peer.ID) network.Conn {
	conns := u.swarm.ConnsToPeer(id)
	second := u.second(id, conns)
	for _, c := range conns {
		if !c.IsClosed() && c != second {
			return c
		}
	}
	return nil
}
