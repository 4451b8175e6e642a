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

// MaxWindow is how many bytes a stream can be relied on to have in flight, one way: together
// with the round trip it bounds what one connection carries. Twice as many may be, while the
// muxer has yet to tell of what was read, and both ends speak.
const MaxWindow = maxWindow / 4

// defaultListen is every IPv4 interface at a port the system picks.
const defaultListen = "/ip4/0.0.0.0/tcp/0"

// Config says who a Transport is and where it listens. The zero value is an
// ephemeral identity that listens on every IPv4 interface at a free port.
type Config struct {
	// Identity is the peer's private key. Nil makes a new one, which is lost with the process.
	Identity ed25519.PrivateKey
	// Listen holds an IP address and port each, as host:port ("0.0.0.0:4001",
	// "[::]:4001", ":4001") or as a multiaddr. Nil is /ip4/0.0.0.0/tcp/0; an empty
	// slice that is not nil listens nowhere, for a peer that only dials.
	Listen []string
	// Known is the file that remembers which identity answered at a host:port:
	// a line "host:port PEERID" each, lines with # are comments. It is created
	// when the first identity is learned. Empty remembers in memory only.
	Known string
	// Admit tells why a peer is not to be connected with; nil, or an answer of nil,
	// takes everybody. It is asked for each connection, in either direction, once
	// the identity is proven, and must answer at once. Whoever is refused is told
	// so: its streams fail with transport.ErrNotAdmitted.
	Admit func(transport.PeerID) error
	// Member tells why a peer takes part in nothing here, as far as is known by now; nil,
	// or an answer of nil, is that it does. As a relay this process gives places to
	// members, and passes on between members, only. It must answer at once.
	Member func(transport.PeerID) error
	// Introduce is called when a relay has refused this process as one that takes part
	// in nothing: once it returns nil, the relay is asked again. Nil does not try.
	Introduce func(ctx context.Context, relay transport.PeerID) error
	// Reachable is told, one call at a time, when libp2p finds out that others can dial
	// this process, or cannot. It knows from relays that are members and have public
	// addresses, and for public addresses only. Nil is not told.
	Reachable func(bool)
	// Limits are what strangers, and members, may take of this process.
	Limits Limits
	// Relay is for peers that cannot be dialled, and those that help them.
	Relay Relay
	// Log takes what an operator should know: identities learned, streams
	// refused. Nil is none.
	Log *zap.Logger

	ioTimeout, handshakeTimeout time.Duration // others than the constants in tests
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

func (c Config) validate() error {
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
// belongs to its seed; signing with any other would betray the key.
func wellFormed(key ed25519.PrivateKey) bool {
	return len(key) == ed25519.PrivateKeySize && ed25519.NewKeyFromSeed(key.Seed()).Equal(key)
}
