package p2pnet

import (
	"crypto/rand"
	"errors"
	"slices"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/host/autonat"
	basichost "github.com/libp2p/go-libp2p/p2p/host/basic"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/observedaddrs"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/seed-97356399/murmuration/peer/p2pnet/internal/acceptlimit"
	"github.com/seed-97356399/murmuration/peer/p2pnet/internal/secure"
)

// This file does what libp2p.New does (go-libp2p v0.51.0, config/config.go), with the parts
// that this package uses. That constructor links every transport that libp2p has, so every
// program that embeds a peer would link them too: docs/design/036.

// parts are the pieces from which assemble makes a host.
type parts struct {
	config      Config
	entrance    *acceptlimit.Limiter
	resources   network.ResourceManager
	connections *connmgr.BasicConnMgr
}

// assembled is a libp2p host, with the services that its Close ends.
type assembled struct {
	*basichost.BasicHost
	swarm *swarm.Swarm
	// observed knows the addresses at which others see this process, for hole punching, and
	// dialer tries theirs, for AutoNAT; nil where nobody needs them.
	observed *observedaddrs.Manager
	dialer   *swarm.Swarm
}

// assemble makes a host that does not listen yet. Close of the host also ends the parts and
// the store; if assemble fails, the caller ends them.
func (p parts) assemble(key crypto.PrivKey, store peerstore.Peerstore) (_ *assembled, err error) {
	bus := eventbus.NewBus()
	s, secured, err := p.newSwarm(key, store, bus, swarm.WithDialTimeout(p.config.handshakeTimeout))
	if err != nil {
		return nil, err
	}
	h := &assembled{swarm: s}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	options := &basichost.HostOpts{
		EventBus: bus, ConnManager: p.connections, UserAgent: userAgent, EnableHolePunching: p.config.Relay.Punch,
	}
	if p.config.Relay.Punch {
		if h.observed, err = observedaddrs.NewManager(bus, s); err != nil {
			return nil, err
		}
		h.observed.Start(s)
		options.ObservedAddrsManager = h.observed
	}
	if h.BasicHost, err = basichost.NewHost(s, options); err != nil {
		return nil, err
	}
	// Members that cannot be dialled are reached through others: relay.go.
	if err := client.AddTransport(h.BasicHost, secured); err != nil {
		return nil, err
	}
	h.Start()
	return h, p.findReachability(h)
}

// Close ends the host. libp2p logs what goes wrong.
func (h *assembled) Close() error {
	if h.observed != nil {
		_ = h.observed.Close()
	}
	err := h.swarm.Close()
	if h.BasicHost != nil {
		err = errors.Join(err, h.BasicHost.Close())
	}
	if h.dialer != nil {
		err = errors.Join(err, h.dialer.Close(), h.dialer.Peerstore().Close())
	}
	return err
}

// findReachability has AutoNAT find out whether others can dial this process and, if this
// process serves AutoNAT, tell others whether it can dial them. AutoNAT dials with a key of
// its own, since a connection that exists already proves nothing.
func (p parts) findReachability(h *assembled) error {
	options := []autonat.Option{autonat.UsingAddresses(func() []ma.Multiaddr {
		return slices.DeleteFunc(h.AllAddrs(), func(a ma.Multiaddr) bool { return !manet.IsPublicAddr(a) })
	})}
	if p.config.Relay.Serve {
		key, _, err := crypto.GenerateEd25519Key(rand.Reader)
		if err != nil {
			return err
		}
		store, err := pstoremem.NewPeerstore()
		if err != nil {
			return err
		}
		if h.dialer, _, err = p.newSwarm(key, store, eventbus.NewBus(), swarm.WithDialRanker(swarm.NoDelayDialRanker)); err != nil {
			return errors.Join(err, store.Close())
		}
		options = append(options, autonat.EnableService(h.dialer))
	}
	found, err := autonat.New(h.BasicHost, options...)
	if err == nil {
		h.SetAutoNat(found)
	}
	return err
}

// newSwarm makes a swarm on TCP, TLS and yamux, and what secures its connections.
func (p parts) newSwarm(key crypto.PrivKey, store peerstore.Peerstore, bus event.Bus, options ...swarm.Option) (*swarm.Swarm, transport.Upgrader, error) {
	id, err := peer.IDFromPrivateKey(key)
	if err == nil {
		err = errors.Join(store.AddPrivKey(id, key), store.AddPubKey(id, key.GetPublic()))
	}
	if err != nil {
		return nil, nil, err
	}
	guard, muxers := gater{p.config.Admit, p.config.Log}, []upgrader.StreamMuxer{{ID: yamux.ID, Muxer: newMuxer(p.config.Uplink)}}
	tls, err := secure.New(key, muxers, duplicateWarning(p.config.Log))
	if err != nil {
		return nil, nil, err
	}
	secured, err := upgrader.New([]sec.SecureTransport{tls}, muxers, nil, p.resources, guard)
	if err != nil {
		return nil, nil, err
	}
	var reuse []tcp.Option
	if !p.config.Relay.Punch {
		// Sharing the listening port with outgoing connections would let a second
		// process take the same port unnoticed; its only use is hole punching.
		reuse = append(reuse, tcp.DisableReuseport())
	}
	over, err := tcp.NewTCPTransport(p.entrance.Guard(p.config.Uplink.over(secured)), p.resources, nil, reuse...)
	if err != nil {
		return nil, nil, err
	}
	s, err := swarm.NewSwarm(id, store, bus, append(options, swarmOptions(guard, p.resources)...)...)
	if err != nil {
		return nil, nil, err
	}
	if err := s.AddTransport(over); err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, secured, nil
}

// swarmOptions are those of each swarm of this process.
func swarmOptions(guard gater, resources network.ResourceManager) []swarm.Option {
	return []swarm.Option{
		swarm.WithConnectionGater(guard),
		swarm.WithResourceManager(resources),
		// After 100 failures the detectors refuse to dial IPv6 or UDP at all. Who
		// keeps trying an IPv6 seed that is down wants it dialled.
		swarm.WithIPv6BlackHoleSuccessCounter(nil),
		swarm.WithUDPBlackHoleSuccessCounter(nil),
	}
}
