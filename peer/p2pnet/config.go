package p2pnet

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// ioTimeout bounds a read or write for which the caller has set no deadline. Such a call
	// ends between one and one and a half times that. One with a deadline ends within an
	// eighth of the time ahead that it was set, and within a second, of it.
	ioTimeout = 30 * time.Second
	// handshakeTimeout bounds the dial of one address, and the time that the opener of a
	// stream has to name the run.
	handshakeTimeout = 10 * time.Second
)

// MaxWindow is how many bytes a stream can always have in flight in one direction: MaxWindow
// divided by the round trip time bounds the rate of one connection. Up to twice as many may
// be in flight while the muxer has not yet reported what was read, and both ends send.
const MaxWindow = maxWindow / 4

// defaultListen is every IPv4 interface at a port the system picks.
const defaultListen = "/ip4/0.0.0.0/tcp/0"

// Config says who a Transport is and where it listens. The zero value is an
// ephemeral identity that listens on every IPv4 interface at a free port.
type Config struct {
	// Identity is the peer's private key. Nil makes a new one, which lasts as long as the process.
	Identity ed25519.PrivateKey
	// Listen holds an IP address and port each, as host:port ("0.0.0.0:4001",
	// "[::]:4001", ":4001") or as a multiaddr. Nil is /ip4/0.0.0.0/tcp/0; an empty
	// slice that is not nil listens nowhere, for a peer that only dials.
	Listen []string
	// Known is the file that remembers which identity answered at a host:port:
	// a line "host:port PEERID" each, lines with # are comments. It is created
	// when the first identity is learned. Empty remembers in memory only.
	Known string
	// Admit returns why a peer must not be connected, or nil; a nil Admit admits everybody.
	// It is called for each connection, in either direction, once the identity is proven,
	// and must return at once. The streams of a refused peer fail with
	// transport.ErrNotAdmitted.
	Admit func(transport.PeerID) error
	// Member returns why a peer takes part in no run here, as far as is known now, or nil
	// if it does; with a nil Member all do. As a relay this process reserves places for
	// members, and connects members, only. It must return at once.
	Member func(transport.PeerID) error
	// Introduce is called when a relay has refused this process as a non-member: once it
	// returns nil, the relay is asked again. With a nil Introduce it is not.
	Introduce func(ctx context.Context, relay transport.PeerID) error
	// Reachable is called, one call at a time, when libp2p finds out whether others can
	// dial this process. It learns that from relays that are members and have public
	// addresses, and for public addresses only. It may be nil.
	Reachable func(bool)
	// Uplink bounds what this process sends, beside others with shares of the same uplink. Nil is
	// no bound.
	Uplink *UplinkShare
	// Limits bound the resources that strangers and members may use here.
	Limits Limits
	// Relay is for peers that cannot be dialled, and those that help them.
	Relay Relay
	// Log takes messages for the operator: identities learned, streams refused. Nil logs
	// nothing.
	Log *zap.Logger

	ioTimeout, handshakeTimeout time.Duration // tests set values other than the constants
}

func (c Config) withDefaults() Config {
	if c.Listen == nil {
		c.Listen = []string{defaultListen}
	}
	c.ioTimeout = cmp.Or(c.ioTimeout, ioTimeout)
	c.handshakeTimeout = cmp.Or(c.handshakeTimeout, handshakeTimeout)
	if c.Admit == nil {
		c.Admit = func(transport.PeerID) error { return nil }
	}
	if c.Member == nil {
		c.Member = func(transport.PeerID) error { return nil }
	}
	c.Limits = c.Limits.withDefaults()
	c.Log = cmp.Or(c.Log, zap.NewNop())
	return c
}

// Validate reports all faults of the configuration at once.
func (c Config) Validate() error {
	c = c.withDefaults()
	var faults []error
	if c.Identity != nil && !wellFormed(c.Identity) {
		faults = append(faults, errors.New("Identity is not an Ed25519 private key made of its own seed"))
	}
	if len(c.Listen) > maxListen {
		faults = append(faults, fmt.Errorf("Listen has %d addresses, at most %d are served", len(c.Listen), maxListen))
	}
	for _, text := range c.Listen {
		if _, err := parseListen(text); err != nil {
			faults = append(faults, err)
		}
	}
	faults = append(faults, c.Relay.faults()...)
	return errors.Join(append(faults, c.Limits.faults()...)...)
}

// wellFormed tells whether key has the right length and a public half that
// belongs to its seed; a signature with any other key reveals the private half.
func wellFormed(key ed25519.PrivateKey) bool {
	return len(key) == ed25519.PrivateKeySize && ed25519.NewKeyFromSeed(key.Seed()).Equal(key)
}
