package p2pnet

import (
	"crypto/rand"
	"errors"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	basichost "github.com/libp2p/go-libp2p/p2p/host/basic"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
)

// newPlainHost is go-libp2p as it comes, on the transport, security and muxer that this
// package uses too, and listens on loopback. It tells addresses as the factory says, if one
// is given. libp2p.New would have the module ask for every transport of libp2p.
func newPlainHost(key crypto.PrivKey, factory func([]ma.Multiaddr) []ma.Multiaddr) (host.Host, error) {
	muxers := []upgrader.StreamMuxer{{ID: yamux.ID, Muxer: yamux.DefaultTransport}}
	id, err := peer.IDFromPrivateKey(key)
	store, err2 := pstoremem.NewPeerstore()
	resources, err3 := rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(rcmgr.DefaultLimits.AutoScale()), rcmgr.WithMetricsDisabled())
	tls, err4 := libp2ptls.New(libp2ptls.ID, key, muxers)
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return nil, err
	}
	bus := eventbus.NewBus()
	secured, err := upgrader.New([]sec.SecureTransport{tls}, muxers, nil, resources, nil)
	over, err2 := tcp.NewTCPTransport(secured, resources, nil)
	s, err3 := swarm.NewSwarm(id, store, bus, swarm.WithResourceManager(resources))
	err4 = errors.Join(store.AddPrivKey(id, key), store.AddPubKey(id, key.GetPublic()))
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return nil, err
	}
	h, err := basichost.NewHost(s, &basichost.HostOpts{EventBus: bus, AddrsFactory: factory})
	if err != nil {
		return nil, err
	}
	h.Start()
	return h, errors.Join(s.AddTransport(over), s.AddListenAddr(ma.StringCast("/ip4/127.0.0.1/tcp/0")))
}

// plainHost is such a host, with a key of its own unless one is given.
func plainHost(t testing.TB, key crypto.PrivKey, factory func([]ma.Multiaddr) []ma.Multiaddr) host.Host {
	t.Helper()
	var err error
	if key == nil {
		key, _, err = crypto.GenerateEd25519Key(rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := newPlainHost(key, factory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}
