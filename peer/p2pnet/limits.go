package p2pnet

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/x/rate"

	"github.com/seed-97356399/murmuration/peer/p2pnet/internal/acceptlimit"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Limits on what strangers can make a process spend. The defaults of libp2p are made
// for a public network of unrelated nodes: 8 connections from one IP address, one
// more every 5 s, 16 MiB for one peer's streams of one protocol. A flock often sits
// behind one address (a laboratory's NAT, a rack of containers) and moves models.
const (
	// protocolsPerPeer is how many protocols with full use of Limits.Streams one
	// peer can be expected to speak.
	protocolsPerPeer = 4
	// streamsPerConnection times Limits.Connections bounds the streams of a process.
	streamsPerConnection = 8
	// connectionsPerPeer bounds those of one peer: a connection and its lanes from
	// either end.
	connectionsPerPeer = 2 * (1 + transport.MaxLane)
	// maxHandshakes is how many connections of others may be in their handshake at
	// once: a large flock that starts together should not be refused. package acceptlimit says what
	// becomes of more.
	maxHandshakes = 256
	// dialsPerSecond bounds how fast connections from one address come, and so does
	// dialBurst times Limits.PerAddress for those that come at once: the dials of a
	// name's first handshake count too.
	dialsPerSecond = 64
	dialBurst      = 2

	// initialWindow is what a sender may have in flight on a new stream: a few
	// slices, so that the first exchange on a slow link does not wait for updates.
	// It is granted to every stream of every stranger, which is why it is no
	// larger. yamux doubles a window of which half is used up within four round trips, up
	// to maxWindow, but loses half of the old one each time (docs/design/008), and tells of
	// what was read half a window at a time, so a sender stands still now and then: at
	// 1 Gbit/s and 20 ms an exchange over one stream took 1.45 s with these 16 MiB, 1.9 s
	// with 8 and 2.5 s with 4. What
	// a reader lags behind by is memory: up to maxWindow each way in each process, which
	// yamux keeps in buffers of up to twice their contents, and only while less than half
	// of what is allowed is taken.
	initialWindow = 1 << 20
	maxWindow     = 16 << 20
	// yamuxWindow is what yamux itself reserves for a new stream, whatever window
	// it is configured to grant.
	yamuxWindow = 256 << 10
	// maxMessage is the largest piece, its header of 12 bytes included, in which
	// yamux sends a stream's bytes: a frame with a slice should be one piece, and
	// each costs a handover between goroutines and a write. yamux's 64 KiB cost 8 %
	// more processor time than this. What another stream of the connection waits
	// for is bounded by the windows, not by this.
	maxMessage = 256 << 10

	// peerShare is the part of Limits.Memory that one peer's streams get at most: by
	// default a quarter of 1 GiB, which is 8 streams at maxWindow and 128 others.
	peerShare = 4

	// maxListen bounds Config.Listen.
	maxListen = 16
)

// Limits are what a process holds at most. The zero value is right for a flock of some
// hundred members, many of them behind one address. docs/design/019 says what each
// protects against.
type Limits struct {
	// Memory is how many bytes all streams together may buffer; one peer gets at
	// most a quarter. It is reserved as windows are granted (1 MiB for a stream to
	// begin with), and used only when somebody sends faster than the handler reads.
	// Zero is DefaultMemory.
	Memory int64
	// Connections is how many may be open, in both directions and lanes included.
	// Above half of it, those without a stream are closed. A membership over streams
	// takes one for each member. Zero is DefaultConnections.
	Connections int
	// PerAddress is how many one IPv4 address or one IPv6 /56 may have open: the
	// members behind one NAT, or in the containers of one machine. Zero is
	// DefaultPerAddress.
	PerAddress int
	// Streams is how many of one protocol a peer may have open here. An exchange
	// takes one and a few lanes, membership a few short ones. Zero is DefaultStreams.
	Streams int
	// Idle is how long a connection is kept that carries no stream; it is closed
	// within one and a half times that. Zero is DefaultIdle.
	Idle time.Duration
}

// Defaults of Limits.
const (
	// DefaultMemory is enough for a thousand streams at their initial window.
	DefaultMemory      = 1 << 30
	DefaultConnections = 2048
	DefaultPerAddress  = 1024
	DefaultStreams     = 64
	DefaultIdle        = time.Minute
)

// mostLimit is what a larger limit counts as: products of it are numbers of 32 bits, where those of one that is to bound nothing were negative.
const mostLimit = 1 << 24

// minMemory is the least Limits.Memory that lets a handful of streams exist.
const minMemory = 64 << 20

// connectionGrace is the age before which no connection is closed to make room.
const connectionGrace = time.Minute

func (l Limits) withDefaults() Limits {
	l.Memory = cmp.Or(l.Memory, DefaultMemory)
	l.Connections = min(cmp.Or(l.Connections, DefaultConnections), mostLimit)
	l.PerAddress = min(cmp.Or(l.PerAddress, min(DefaultPerAddress, l.Connections)), mostLimit)
	l.Streams = min(cmp.Or(l.Streams, DefaultStreams), mostLimit)
	l.Idle = cmp.Or(l.Idle, DefaultIdle)
	return l
}

func (l Limits) faults() (faults []error) {
	if l.Memory < minMemory {
		faults = append(faults, fmt.Errorf("Limits.Memory %d bytes is less than %d", l.Memory, int64(minMemory)))
	}
	if l.Connections < 1 || l.PerAddress < 1 || l.Streams < 1 {
		faults = append(faults, fmt.Errorf("Limits.Connections %d, PerAddress %d and Streams %d: none may be negative", l.Connections, l.PerAddress, l.Streams))
	}
	if l.Idle < 0 {
		faults = append(faults, fmt.Errorf("Limits.Idle %v is negative", l.Idle))
	}
	return faults
}

// handshakes is how many connections of others may wait for a key to be shown, and
// strangers how many may be open with peers that are no members: package acceptlimit.
func (l Limits) handshakes() int { return max(1, min(maxHandshakes, l.Connections/8)) }
func (l Limits) strangers() int  { return max(1, l.Connections/4) }

// high is the number of connections above which idle ones are closed, and low how
// many are left then.
func (l Limits) high() int { return max(1, l.Connections/2) }
func (l Limits) low() int  { return max(1, l.Connections*3/8) }

// newResourceManager makes the limits of one host. Loopback addresses are
// exempt from those per address.
func (l Limits) newResourceManager() (network.ResourceManager, error) {
	streams, conns := rcmgr.LimitVal(l.Streams), rcmgr.LimitVal(l.Connections)
	buffered, all := rcmgr.LimitVal64(l.Memory), streamsPerConnection*conns
	limits := rcmgr.PartialLimitConfig{
		System: rcmgr.ResourceLimits{
			Memory: buffered,
			Conns:  conns, ConnsInbound: conns, ConnsOutbound: conns, FD: conns,
			Streams: all, StreamsInbound: all, StreamsOutbound: all,
		},
		Transient: rcmgr.ResourceLimits{
			Memory: buffered / 4,
			// Those that others begin are the door's to bound: one that gave way counts
			// here a moment longer. They take nothing from those begun here.
			Conns: 3 * maxHandshakes, ConnsInbound: 2 * maxHandshakes, ConnsOutbound: maxHandshakes, FD: 3 * maxHandshakes,
			Streams: conns, StreamsInbound: conns, StreamsOutbound: conns,
		},
		// Twice Limits.Streams: a stream counts here a moment longer than in
		// slots, which refuses with a reason that the opener can read.
		ProtocolPeerDefault: rcmgr.ResourceLimits{
			Memory: buffered / peerShare, Streams: 4 * streams, StreamsInbound: 2 * streams, StreamsOutbound: 2 * streams,
		},
		ProtocolDefault: rcmgr.ResourceLimits{
			Memory: buffered, Streams: all, StreamsInbound: all, StreamsOutbound: all,
		},
		PeerDefault: rcmgr.ResourceLimits{
			Memory: buffered / peerShare,
			Conns:  connectionsPerPeer, ConnsInbound: connectionsPerPeer, ConnsOutbound: connectionsPerPeer, FD: connectionsPerPeer,
			Streams: 4 * protocolsPerPeer * streams, StreamsInbound: 2 * protocolsPerPeer * streams, StreamsOutbound: 2 * protocolsPerPeer * streams,
		},
	}
	subnet4 := []rcmgr.ConnLimitPerSubnet{{PrefixLength: acceptlimit.HomeBits4, ConnCount: l.PerAddress}}
	subnet6 := []rcmgr.ConnLimitPerSubnet{{PrefixLength: acceptlimit.HomeBits6, ConnCount: l.PerAddress}}
	return rcmgr.NewResourceManager(
		rcmgr.NewFixedLimiter(limits.Build(rcmgr.DefaultLimits.AutoScale())),
		rcmgr.WithMetricsDisabled(),
		rcmgr.WithLimitPerSubnet(subnet4, subnet6),
		rcmgr.WithConnRateLimiters(l.newRateLimiter()),
	)
}

// newRateLimiter bounds how fast connections to and from one address begin.
func (l Limits) newRateLimiter() *rate.Limiter {
	limit := rate.Limit{RPS: dialsPerSecond, Burst: dialBurst * l.PerAddress}
	return &rate.Limiter{
		NetworkPrefixLimits: []rate.PrefixLimit{
			{Prefix: netip.MustParsePrefix("127.0.0.0/8")},
			{Prefix: netip.MustParsePrefix("::1/128")},
		},
		SubnetRateLimiter: rate.SubnetLimiter{
			IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: acceptlimit.HomeBits4, Limit: limit}},
			IPv6SubnetLimits: []rate.SubnetLimit{{PrefixLength: acceptlimit.HomeBits6, Limit: limit}},
		},
	}
}

// accounted is a peer's resource scope that also reserves the part of a stream's
// initial window which yamux grants without a reservation. Without it, a peer
// could make this process buffer initialWindow/yamuxWindow times what the
// resource manager counts. If the reservation fails, yamux closes the connection.
type accounted struct{ network.PeerScope }

func (a accounted) BeginSpan() (network.ResourceScopeSpan, error) {
	span, err := a.PeerScope.BeginSpan()
	if err != nil {
		return nil, err
	}
	if err := span.ReserveMemory(initialWindow-yamuxWindow, math.MaxUint8); err != nil {
		span.Done()
		return nil, err
	}
	return span, nil
}
