package p2pnet

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/seed-97356399/murmuration/peer/transport"
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

// upkeep knows when connections were last used, lanes too, and which the other end takes
// for the one that is no lane. libp2p tells it what has ended.
type upkeep struct {
	*node
	lanes *lanes
	keeps func(peer.ID) bool // whether the connection with a peer keeps somebody reachable
	two   chan struct{}      // capacity 1: a peer may have two
	ended chan struct{}      // closed when tend has returned

	mu    sync.Mutex
	conns map[network.Conn]usage
}

type usage struct {
	last time.Time // zero: not since it was opened
	// first: the other end has dialled it, and not as a lane.
	first bool
	// ours: this end has opened a stream on it; theirs: the other has.
	ours, theirs bool
}

func newUpkeep(n *node) *upkeep {
	return &upkeep{node: n, two: make(chan struct{}, 1), ended: make(chan struct{}), conns: make(map[network.Conn]usage)}
}

// note adds to what is known of a connection that is used now. Of one that has ended
// nothing is kept: that it has, libp2p tells once.
func (u *upkeep) note(c network.Conn, now usage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c.IsClosed() {
		return
	}
	of, inbound := u.conns[c], c.Stat().Direction == network.DirInbound
	now.first = now.first && inbound
	if inbound && (now.ours && !of.ours || now.first && !of.first) {
		select {
		case u.two <- struct{}{}:
		default:
		}
	}
	u.conns[c] = usage{
		last: time.Now(), first: of.first || now.first, ours: of.ours || now.ours, theirs: of.theirs || now.theirs,
	}
}

// carry notes that the other end has opened a stream on a connection. What is said
// before an exchange, and beside it, is never said on a lane.
func (u *upkeep) carry(c network.Conn, speak transport.Protocol) {
	u.note(c, usage{theirs: true, first: speak == transport.ProtocolSwim || speak == transport.ProtocolHello})
}

// watch has a swarm tell of connections that have ended.
func (u *upkeep) watch(s network.Network) {
	s.Notify(&network.NotifyBundle{DisconnectedF: func(_ network.Network, c network.Conn) {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.conns, c)
	}})
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
			u.closeIdle(u.swarm.Conns(), u.keeps)
			u.closeIdle(u.lanes.conns(), func(peer.ID) bool { return false })
		case <-u.two:
			seconds.Reset(secondLooks)
		case <-seconds.C:
			if u.closeSeconds() {
				seconds.Reset(secondLooks)
			}
		}
	}
}

// between is what joins two peers.
type between struct {
	in, out network.Conn // that the other end has dialled, and not as a lane; that this end has
	unused  network.Conn // that this end has dialled and opened no stream on
	spoken  bool         // by this end, on one that the other has dialled
	theirs  bool         // the other end has opened a stream on out
	young   bool         // both ends have dialled, and one of them moments ago
}

func (u *upkeep) between(conns []network.Conn) (b between) {
	u.mu.Lock()
	defer u.mu.Unlock()
	inbound, young := false, false
	for _, c := range conns {
		if c.IsClosed() || isCircuit(c.RemoteMultiaddr()) {
			continue
		}
		of := u.conns[c]
		young = young || time.Since(c.Stat().Opened) < youth
		if c.Stat().Direction == network.DirInbound {
			inbound, b.spoken = true, b.spoken || of.ours
			if of.first && b.in == nil {
				b.in = c
			}
			continue
		}
		if b.out == nil {
			b.out, b.theirs = c, of.theirs
		}
		if !of.ours && b.unused == nil {
			b.unused = c
		}
	}
	b.young = young && inbound && b.out != nil
	return b
}

// second finds the connection to do without, if two peers have dialled each other
// at once: both ends choose that of the peer with the greater id.
//
// One that this end has dialled and not used the other cannot know to be no lane, so it is
// for this end to close, once whatever it was dialled for has found another way. Where both
// ends speak on what the other has dialled, neither learns which is taken for the first.
func (u *upkeep) second(id peer.ID, conns []network.Conn) network.Conn {
	b := u.between(conns)
	if len(conns) < 2 || b.out == nil {
		return nil
	}
	needless := b.out == b.unused && time.Since(b.out.Stat().Opened) >= youth
	switch {
	case b.in == nil && needless && b.spoken && (u.id > id || !b.theirs):
		return b.out // else it is for the other end to close its own
	case b.in == nil:
		return nil
	case u.id > id, needless:
		return b.out
	}
	return b.in
}

// closeSeconds closes those that this process dialled and that nothing but packets of the
// membership, which are sent again, pass on. It reports whether one is left. A topic keeps
// one: gossipsub forgets what a neighbour has named, once, when its own stream to it ends.
func (u *upkeep) closeSeconds() (left bool) {
	for _, id := range u.swarm.Peers() {
		conns := u.swarm.ConnsToPeer(id)
		c, b := u.second(id, conns), u.between(conns)
		switch {
		case c == nil:
			left = left || b.spoken && b.unused != nil
		case c.Stat().Direction == network.DirInbound:
			left = left || b.unused != nil
		case carries(c, libraryProtocols, protocol.ID(transport.ProtocolSwim)):
			left = true
		default:
			_ = c.Close()
		}
	}
	return left
}

// closeIdle closes those of some connections that have not been used for too long.
func (u *upkeep) closeIdle(conns []network.Conn, keeps func(peer.ID) bool) {
	for _, c := range conns {
		if carries(c, libraryProtocols) || keeps(c.RemotePeer()) {
			u.note(c, usage{})
			continue
		}
		u.mu.Lock()
		last := u.conns[c].last
		u.mu.Unlock()
		if last.IsZero() {
			last = c.Stat().Opened
		}
		if time.Since(last) >= u.config.Limits.Idle {
			_ = c.Close()
		}
	}
}

// libraryProtocols begins the names of what libp2p's own services keep open for as long as
// there is a connection.
const libraryProtocols protocol.ID = "/ipfs/"

// carries tells whether a connection has a stream of a protocol whose name does not begin
// with one of some texts.
func carries(c network.Conn, but ...protocol.ID) bool {
	return slices.ContainsFunc(c.GetStreams(), func(s network.Stream) bool {
		is := func(p protocol.ID) bool { return strings.HasPrefix(string(s.Protocol()), string(p)) }
		return !slices.ContainsFunc(but, is)
	})
}

// connections is the number of open connections. One that is about to be closed, because
// two peers have dialled each other at once, does not count, nor does one that came
// beside another moments ago, which may be such a one.
func (u *upkeep) connections() (n int) {
	for _, id := range u.swarm.Peers() {
		conns := u.swarm.ConnsToPeer(id)
		n += len(conns)
		if u.second(id, conns) != nil || u.between(conns).young {
			n--
		}
	}
	return n
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
