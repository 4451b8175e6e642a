package p2pnet

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/loglimit"
	"github.com/seed-97356399/murmuration/peer/p2pnet/internal/acceptlimit"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Transport implements transport.Transport on a libp2p host of its own. Safe for
// concurrent use.
type Transport struct {
	*node
	*opener
	*listener
	*datagrams
	*gossip

	lanes      *lanes
	upkeep     *upkeep
	relays     *relays
	finish     func() error
	logOmitted func() // logs the counts of lines that were left out
}

var _ transport.Transport = (*Transport)(nil)

// counts are the numbers of refused things that others sent, by cause.
type counts struct {
	mu sync.Mutex
	of map[string]uint64
}

func (c *counts) add(cause string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[cause]++
}

// New starts a transport. It listens when it returns; an address of Config.Listen that is
// not available is an error.
func New(config Config) (*Transport, error) {
	config = config.withDefaults()
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("p2pnet: configuration: %w", err)
	}
	key := slices.Clone(config.Identity)
	if key == nil {
		_, key, _ = ed25519.GenerateKey(nil) // never fails
	}
	config.Identity = nil
	log, logOmitted := loglimit.Limit(config.Log)
	config.Log = log
	known, err := openKnown(config.Known)
	if err != nil {
		return nil, fmt.Errorf("p2pnet: %w", err)
	}
	book := newBook()
	refused := &counts{of: make(map[string]uint64)}
	gaveWay := func() { refused.add("gave way") }
	entrance := acceptlimit.New(config.Limits.handshakes(), config.Limits.strangers(), book.Contains, gaveWay, config.Log)
	h, err := newHost(config, key, entrance, book.Contains)
	if err != nil {
		return nil, fmt.Errorf("p2pnet: %w", err)
	}
	ending, end := context.WithCancel(context.Background())
	n := &node{
		config: config, key: key, id: h.ID(), self: transport.PeerID(h.ID().String()), log: config.Log,
		host: h, swarm: h.swarm, refused: refused, book: book, ending: ending, end: end,
	}
	upkeep := newUpkeep(n)
	dials := &dialer{node: n, known: known, upkeep: upkeep}
	relays := &relays{dialer: dials}
	upkeep.keeps = relays.reserved
	lanes := newLanes(dials)
	upkeep.lanes = lanes
	t := &Transport{
		node: n, opener: &opener{dials, lanes},
		listener:  newListener(n, upkeep),
		datagrams: newDatagrams(n), gossip: &gossip{node: n},
		lanes: lanes, upkeep: upkeep, relays: relays, logOmitted: logOmitted,
	}
	t.finish = sync.OnceValue(t.close)
	upkeep.watch(h.swarm)
	err = relays.start()
	go upkeep.tend() // tend uses the relays
	if err != nil {
		return nil, errors.Join(fmt.Errorf("p2pnet: %w", err), t.Close())
	}
	return t, nil
}

// Close refuses new streams, closes every connection, which ends the reads and
// writes of handlers, and returns when no handler runs any more. It must not be
// called by a handler. It is idempotent.
func (t *Transport) Close() error { return t.finish() }

func (t *Transport) close() error {
	t.gate.shut()
	t.end()
	<-t.upkeep.ended
	t.relays.wait()
	err := errors.Join(t.datagrams.close(), t.host.Close(), t.lanes.close())
	t.gate.wait()
	t.logOmitted()
	return err
}

// Sealed implements transport.Transport: streams go over TLS or Noise.
func (t *Transport) Sealed() bool { return true }

// Refused implements transport.Transport: how many were refused so far, by cause; causes with none are left out.
func (t *Transport) Refused() map[string]uint64 {
	t.refused.mu.Lock()
	defer t.refused.mu.Unlock()
	return maps.Clone(t.refused.of)
}

// Addresses are multiaddrs without the peer's id, short enough for a
// transport.Record: at most transport.MaxAddresses, public ones first and loopback last.
func (t *Transport) Addresses() []string {
	listening, err := t.swarm.InterfaceListenAddresses()
	if err != nil {
		t.log.Warn("cannot list the addresses of this machine", zap.Error(err))
		return nil
	}
	listening = slices.DeleteFunc(slices.Clone(listening), func(a ma.Multiaddr) bool {
		// libp2p does not dial link-local IPv6: the zone is another one elsewhere.
		return isCircuit(a) || manet.IsIP6LinkLocal(a) || len(a.String()) > transport.MaxAddressSize
	})
	slices.SortStableFunc(listening, func(a, b ma.Multiaddr) int { return cmp.Compare(reach(a), reach(b)) })
	var texts []string
	for _, a := range t.relays.via {
		texts = append(texts, relayPrefix+a.id.String())
	}
	for _, a := range listening {
		if text := a.String(); len(texts) < transport.MaxAddresses && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// JoinAddresses are Addresses with the peer's id, for people to copy: whoever joins by one
// of them need trust only the key.
func (t *Transport) JoinAddresses() []string {
	var texts []string
	for _, text := range t.Addresses() {
		if !strings.HasPrefix(text, relayPrefix) {
			texts = append(texts, text+"/p2p/"+string(t.self))
		}
	}
	for _, a := range t.relays.via {
		texts = append(texts, a.String()+circuitSuffix+"/p2p/"+string(t.self))
	}
	return texts
}

// reach orders addresses by how far away they can be dialled, IPv4 first.
func reach(a ma.Multiaddr) int {
	ip, _ := manet.ToIP(a) // nil, which is not IPv4, if a has no IP address
	rank := 2
	switch {
	case manet.IsPublicAddr(a):
		rank = 0
	case ip.IsLinkLocalUnicast():
		rank = 4
	case ip.IsLoopback():
		rank = 6
	}
	if ip.To4() == nil {
		rank++
	}
	return rank
}

// Connections is the number of open connections, lanes included.
func (t *Transport) Connections() int { return len(t.lanes.conns()) + t.upkeep.connections() }

// Disconnect closes the connections with a peer, lanes included, and fails the streams on
// them. It does not prevent the peer from connecting again.
func (t *Transport) Disconnect(id transport.PeerID) {
	remote, err := parsePeer(id)
	if err != nil || !t.gate.enter() {
		return
	}
	defer t.gate.leave()
	for _, conn := range append(t.swarm.Conns(), t.lanes.conns()...) {
		if conn.RemotePeer() == remote {
			err = errors.Join(err, conn.CloseWithError(network.ConnGated))
		}
	}
	if err != nil {
		t.log.Debug("disconnecting a peer", zap.String("peer", string(id)), zap.Error(err))
	}
}

// Block implements transport.Transport.
func (t *Transport) Block(id transport.PeerID) string {
	parsed, err := parsePeer(id)
	if err != nil {
		return ""
	}
	conn := t.upkeep.connected(parsed)
	if conn == nil || isCircuit(conn.RemoteMultiaddr()) {
		return ""
	}
	ip, err := manet.ToIP(conn.RemoteMultiaddr())
	if err != nil {
		return ""
	}
	address, _ := netip.AddrFromSlice(ip)
	return acceptlimit.BlockOf(address).String()
}
