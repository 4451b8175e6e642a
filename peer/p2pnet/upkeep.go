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

// A process keeps one connection with each peer that it deals with, lanes aside. By
// itself libp2p keeps two when two peers dial each other at the same moment, as
// members do that learn of each other from the same news; and it keeps unused
// connections for ever.

// secondLooks is the time between two looks at a second connection that is still in
// use.
const secondLooks = 200 * time.Millisecond

// youth is how long a connection counts as young.
const youth = 2 * time.Second

// upkeep knows when each connection, lanes included, was last used, and which of them
// the other end uses as the main one. libp2p reports ended connections to it.
type upkeep struct {
	*node
	lanes *lanes
	keeps func(peer.ID) bool // whether a relay reservation depends on the connection with a peer
	two   chan struct{}      // capacity 1: a signal that some peer may have two connections
	ended chan struct{}      // closed when tend has returned

	mu    sync.Mutex
	conns map[network.Conn]usage
}

type usage struct {
	last time.Time // zero if not used since it was opened
	// first: the other end has dialled it, and not as a lane.
	first bool
	// ours: this end has opened a stream on it; theirs: the other has.
	ours, theirs bool
}

func newUpkeep(n *node) *upkeep {
	return &upkeep{node: n, two: make(chan struct{}, 1), ended: make(chan struct{}), conns: make(map[network.Conn]usage)}
}

// note updates the usage of a connection. It keeps nothing of a connection that has
// ended, since libp2p reports the end only once.
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

// carry notes that the other end has opened a stream on a connection. Only exchanges
// use lanes, so a stream of another protocol shows that the connection is no lane.
func (u *upkeep) carry(c network.Conn, speak transport.Protocol) {
	u.note(c, usage{theirs: true, first: speak == transport.ProtocolSwim || speak == transport.ProtocolHello})
}

// watch makes a swarm report connections that have ended.
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
	idle := time.NewTicker(max(u.config.Limits.Idle/2, time.Millisecond))
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

// between describes the connections between this process and one peer.
type between struct {
	in, out network.Conn // in: dialled by the other end and not as a lane; out: dialled by this end
	unused  network.Conn // dialled by this end, without a stream of this end
	spoken  bool         // this end has opened a stream on a connection that the other end dialled
	theirs  bool         // the other end has opened a stream on out
	young   bool         // both ends have dialled, one of them moments ago
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

// second returns the connection to close if two peers have dialled each other at the
// same moment: both ends choose the one that the peer with the greater id dialled.
//
// The other end cannot know whether an unused connection that this end dialled is a lane. So this
// end closes such a connection, once its streams go over another one. If each end uses the
// connection that the other has dialled, neither learns which one the other takes for the main one.
func (u *upkeep) second(id peer.ID, conns []network.Conn) network.Conn {
	b := u.between(conns)
	if len(conns) < 2 || b.out == nil {
		return nil
	}
	needless := b.out == b.unused && time.Since(b.out.Stat().Opened) >= youth
	switch {
	case b.in == nil && needless && b.spoken && (u.id > id || !b.theirs):
		return b.out // else the other end closes the one that it dialled
	case b.in == nil:
		return nil
	case u.id > id, needless:
		return b.out
	}
	return b.in
}

// closeSeconds closes second connections that this process dialled and that carry nothing but packets of the
// membership, which are sent again. It reports whether one is left. It keeps one that a topic uses: gossipsub
// forgets the topics of a neighbour, which are sent only once, when its own stream to the neighbour ends.
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

// closeIdle closes the connections that have not been used for too long.
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

// libraryProtocols is the prefix of libp2p's own protocols, whose streams stay open as
// long as the connection.
const libraryProtocols protocol.ID = "/ipfs/"

// carries tells whether a connection has a stream of a protocol whose name begins with
// none of these prefixes.
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

// connected returns the oldest connection to a peer that this process did not dial
// as a lane and will not close as the second of two. The other end may have dialled
// it as a lane; but a lane is the younger one as a rule, and is not closed while it
// has streams of this end.
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
