package p2pnet

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/loglimit"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// Transport implements seam.Transport on a libp2p host of its own. Safe for
// concurrent use.
type Transport struct {
	config Config
	key    ed25519.PrivateKey
	id     peer.ID
	self   seam.PeerID
	log    *zap.Logger

	host   host.Host
	swarm  *swarm.Swarm
	known  *knownFile
	book   *book
	lanes  lanes
	gossip gossip

	upkeep    upkeep
	relaying  relaying
	datagrams datagrams
	routes    routes
	slots     slots
	counters  *counters

	// ending is cancelled by Close, to cut short what is under way.
	ending context.Context
	end    context.CancelFunc
	gate   gate
	finish func() error
	untold func() // logs the counts of lines that were left out
}

var (
	_ seam.Transport = (*Transport)(nil)
	_ seam.Refuser   = (*Transport)(nil)
)

// Stats counts what was refused to other peers since New.
type Stats struct {
	// UnknownRuns are streams for a run that has no handler here.
	UnknownRuns uint64
	// TooManyStreams are streams beyond what one peer may have open.
	TooManyStreams uint64
	// BadPreambles are streams that did not name a run, or not in time.
	BadPreambles uint64
	// BadDatagrams are datagrams that were not signed, or not by a peer of which
	// anything is known.
	BadDatagrams uint64
	// GaveWay are connections without a proven key, or of peers that are no members,
	// closed for others that came.
	GaveWay uint64
}

type counters struct {
	unknownRuns, tooManyStreams, badPreambles, badDatagrams, gaveWay atomic.Uint64
}

// New starts a transport. It listens when it returns; an address of
// Config.Listen that cannot be had is an error.
func New(config Config) (*Transport, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("p2pnet: configuration: %w", err)
	}
	key := slices.Clone(config.Key)
	if key == nil {
		var err error
		if _, key, err = ed25519.GenerateKey(nil); err != nil {
			return nil, fmt.Errorf("p2pnet: making a key: %w", err)
		}
	}
	config.Key = nil
	log, untold := loglimit.Limit(config.Log)
	config.Log = log
	known, err := openKnown(config.Known)
	if err != nil {
		return nil, fmt.Errorf("p2pnet: %w", err)
	}
	book := newBook()
	counters := new(counters)
	door, err := newDoor(config.Limits, book.knows, &counters.gaveWay, config.Log)
	if err != nil {
		return nil, fmt.Errorf("p2pnet: %w", err)
	}
	h, err := newHost(config, key, door)
	if err != nil {
		return nil, fmt.Errorf("p2pnet: %w", err)
	}
	network, ok := h.Network().(*swarm.Swarm)
	if !ok {
		return nil, errors.Join(fmt.Errorf("p2pnet: libp2p made a %T where a swarm was expected", h.Network()), h.Close())
	}
	ending, end := context.WithCancel(context.Background())
	t := &Transport{
		config: config, key: key, id: h.ID(), self: seam.PeerID(h.ID().String()), log: config.Log,
		host: h, swarm: network, known: known, book: book, counters: counters,
		lanes:  lanes{idle: laneIdle},
		ending: ending, end: end,
		slots: slots{limit: config.Limits.Streams}, upkeep: newUpkeep(), untold: untold,
	}
	t.finish = sync.OnceValue(t.close)
	network.Notify(&t.upkeep)
	go t.tend()
	if err := t.startRelaying(); err != nil {
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
	t.relaying.wait()
	err := errors.Join(t.datagrams.close(), t.lanes.close(), t.host.Close())
	t.gate.wait()
	t.untold()
	return err
}

// Stats returns what has been refused so far.
func (t *Transport) Stats() Stats {
	return Stats{
		UnknownRuns:    t.counters.unknownRuns.Load(),
		TooManyStreams: t.counters.tooManyStreams.Load(),
		BadPreambles:   t.counters.badPreambles.Load(),
		BadDatagrams:   t.counters.badDatagrams.Load(),
		GaveWay:        t.counters.gaveWay.Load(),
	}
}

// Refused implements seam.Refuser: what Stats counts, where it is not 0.
func (t *Transport) Refused() map[string]uint64 {
	s := t.Stats()
	counts := map[string]uint64{
		"unknown run": s.UnknownRuns, "too many streams": s.TooManyStreams, "bad preamble": s.BadPreambles,
		"bad datagram": s.BadDatagrams, "gave way": s.GaveWay,
	}
	maps.DeleteFunc(counts, func(_ string, n uint64) bool { return n == 0 })
	return counts
}

// Addresses are multiaddrs without the peer's id, short enough for a
// seam.Record: at most seam.MaxAddresses, public ones first and loopback last.
func (t *Transport) Addresses() []string {
	listening, err := t.swarm.InterfaceListenAddresses()
	if err != nil {
		t.log.Warn("cannot list the addresses of this machine", zap.Error(err))
		return nil
	}
	listening = slices.DeleteFunc(slices.Clone(listening), func(a ma.Multiaddr) bool {
		// libp2p does not dial link-local IPv6: the zone is another one elsewhere.
		return isCircuit(a) || manet.IsIP6LinkLocal(a) || len(a.String()) > seam.MaxAddressSize
	})
	slices.SortStableFunc(listening, func(a, b ma.Multiaddr) int { return cmp.Compare(reach(a), reach(b)) })
	texts := t.relaying.addresses()
	for _, a := range listening {
		if text := a.String(); len(texts) < seam.MaxAddresses && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// JoinAddresses are Addresses with the peer's id, for people to copy: who joins
// by one of them trusts nothing but the key.
func (t *Transport) JoinAddresses() []string {
	var texts []string
	for _, text := range t.Addresses() {
		if !strings.HasPrefix(text, relayPrefix) {
			texts = append(texts, text+"/p2p/"+string(t.self))
		}
	}
	return append(texts, t.relaying.joinAddresses(t.self)...)
}

// reach orders addresses by how far away they can be dialled, IPv4 first.
func reach(a ma.Multiaddr) int {
	rank := 2
	switch {
	case manet.IsPublicAddr(a):
		rank = 0
	case manet.IsIPLoopback(a):
		rank = 6
	}
	if ip, err := manet.ToIP(a); err == nil {
		if ip.IsLinkLocalUnicast() {
			rank = 4
		}
		if ip.To4() == nil {
			rank++
		}
	}
	return rank
}

// gate counts what runs inside a transport, so that Close can wait for it.
type gate struct {
	mu     sync.Mutex
	closed bool
	inside sync.WaitGroup
}

// enter counts the caller in until leave, unless the gate is shut.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inside.Add(1)
	return true
}

func (g *gate) leave() { g.inside.Done() }

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

func (g *gate) wait() { g.inside.Wait() }
