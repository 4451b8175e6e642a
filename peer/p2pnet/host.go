package p2pnet

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	ma "github.com/multiformats/go-multiaddr"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/seed-97356399/murmuration/peer/p2pnet/internal/door"
	"github.com/seed-97356399/murmuration/peer/p2pnet/internal/secure"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// userAgent is what libp2p's identify protocol says of this process.
const userAgent = "murmuration"

// newHost assembles a libp2p host that does what this package needs and nothing
// else, and listens at every address of config, behind a door.
func newHost(config Config, key ed25519.PrivateKey, entrance *door.Door, knows func(peer.ID) bool) (host.Host, error) {
	private, err := crypto.UnmarshalEd25519PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("using the key: %w", err)
	}
	resources, err := config.Limits.newResourceManager()
	if err != nil {
		return nil, fmt.Errorf("setting resource limits: %w", err)
	}
	connections, err := connmgr.NewConnManager(config.Limits.low(), config.Limits.high(), connmgr.WithGracePeriod(connectionGrace))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("setting connection limits: %w", err), resources.Close())
	}
	store, err := newMemberStore(func(id peer.ID) bool { return knows(id) && config.Member(seam.PeerID(id.String())) == nil })
	if err != nil {
		return nil, errors.Join(err, connections.Close(), resources.Close())
	}
	options := []libp2p.Option{
		libp2p.Peerstore(store),
		libp2p.Identity(private),
		// Listening is done below: given to libp2p.New, an address that fails is
		// only logged if another one succeeds.
		libp2p.NoListenAddrs,
		libp2p.Security(libp2ptls.ID, secure.Constructor(twinWarning(config.Log))),
		libp2p.Muxer(yamux.ID, newMuxer()),
		libp2p.ResourceManager(resources),
		libp2p.ConnectionManager(connections),
		libp2p.ConnectionGater(gater{config.Admit, config.Log}),
		libp2p.WithDialTimeout(config.handshakeTimeout),
		// After 100 failures the detectors refuse to dial IPv6 or UDP at all. Who
		// keeps trying an IPv6 seed that is down wants it dialled.
		libp2p.IPv6BlackHoleSuccessCounter(nil),
		libp2p.UDPBlackHoleSuccessCounter(nil),
		// Members that cannot be dialled are reached through others: relay.go.
		libp2p.EnableRelay(),
		libp2p.DisableMetrics(),
		libp2p.Ping(false),
		libp2p.UserAgent(userAgent),
	}
	h, err := libp2p.New(append(options, config.Relay.options(entrance)...)...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting libp2p: %w", err), connections.Close(), resources.Close(), store.Close())
	}
	for _, text := range config.Listen {
		address, err := parseListen(text)
		if err == nil {
			err = listen(h.Network(), address)
		}
		if err != nil {
			err = fmt.Errorf("listening on %s: %w: listen on an address of this machine, at a port that no other process uses", text, err)
			return nil, errors.Join(err, h.Close())
		}
	}
	return h, nil
}

// listen listens at one address. The swarm's own Listen gives the cause of a failure as text.
func listen(n network.Network, address ma.Multiaddr) error {
	if s, ok := n.(*swarm.Swarm); ok {
		return s.AddListenAddr(address)
	}
	return n.Listen(address)
}

// twinReminder is the least time between two warnings that another process has this peer's key.
const twinReminder = time.Minute

// twinWarning is what to do when another process with this peer's key has connected.
func twinWarning(log *zap.Logger) func() {
	seldom := rate.Sometimes{Interval: twinReminder}
	return func() {
		seldom.Do(func() {
			log.Warn("another process with this peer's key has connected, as on a cloned machine: that one stops if it is the later. Give each process a key and a checkpoint folder of its own")
		})
	}
}

// muxer is yamux with the sizes of limits.go, its windows accounted for in full.
type muxer struct{ yamux.Transport }

func newMuxer() *muxer {
	m := &muxer{*yamux.DefaultTransport}
	m.InitialStreamWindowSize = initialWindow
	m.MaxStreamWindowSize = maxWindow
	m.MaxMessageSize = maxMessage
	return m
}

func (m *muxer) NewConn(conn net.Conn, isServer bool, scope network.PeerScope) (network.MuxedConn, error) {
	if scope != nil {
		scope = accounted{scope}
	}
	return m.Transport.NewConn(conn, isServer, scope)
}
