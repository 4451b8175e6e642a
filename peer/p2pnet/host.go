package p2pnet

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/seed-97356399/murmuration/peer/p2pnet/internal/acceptlimit"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// userAgent is what libp2p's identify protocol says of this process.
const userAgent = "murmuration"

// newHost makes a libp2p host that does what this package needs and nothing else, and
// listens at every address of config, with an acceptlimit.Limiter in front.
func newHost(config Config, key ed25519.PrivateKey, entrance *acceptlimit.Limiter, knows func(peer.ID) bool) (*assembled, error) {
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
	store, err := newMemberStore(func(id peer.ID) bool { return knows(id) && config.Member(transport.PeerID(id.String())) == nil })
	if err != nil {
		return nil, errors.Join(err, connections.Close(), resources.Close())
	}
	h, err := parts{config, entrance, resources, connections}.assemble(private, store)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting libp2p: %w", err), connections.Close(), resources.Close(), store.Close())
	}
	for _, text := range config.Listen {
		address, err := parseListen(text)
		if err == nil {
			err = h.swarm.AddListenAddr(address) // Listen would give the cause of a failure as text only
		}
		if err != nil {
			err = fmt.Errorf("listening on %s: %w: listen on an address of this machine, at a port that no other process uses", text, err)
			return nil, errors.Join(err, h.Close())
		}
	}
	return h, nil
}

// duplicateReminder is the least time between two warnings that another process has this peer's key.
const duplicateReminder = time.Minute

// duplicateWarning is what to do when another process with this peer's key has connected.
func duplicateWarning(log *zap.Logger) func() {
	seldom := rate.Sometimes{Interval: duplicateReminder}
	return func() {
		seldom.Do(func() {
			log.Warn("another process with this peer's key has connected, as on a cloned machine: that one stops if it is the later. Give each process a key and a checkpoint folder of its own")
		})
	}
}

// muxer is yamux with the sizes of limits.go; the resource manager counts its windows in full.
type muxer struct{ yamux.Transport }

func newMuxer(uplink *UplinkShare) *muxer {
	m := &muxer{*yamux.DefaultTransport}
	if uplink != nil {
		m.ConnectionWriteTimeout = uplinkTimeout
	}
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
