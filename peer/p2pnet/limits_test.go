package p2pnet

import (
	"errors"
	"math"
	"net/netip"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestManyPeersBehindOneAddress opens what libp2p's defaults would refuse: the
// ninth connection of one address, and the seventeenth within seconds.
func TestManyPeersBehindOneAddress(t *testing.T) {
	m, err := Limits{}.withDefaults().newResourceManager()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, text := range []string{"/ip4/203.0.113.7/tcp/1", "/ip6/2600::1/tcp/1"} {
		from, err := ma.NewMultiaddr(text)
		if err != nil {
			t.Fatal(err)
		}
		var open []network.ConnManagementScope
		for range 2 * maxHandshakes {
			scope, err := m.OpenConnection(network.DirInbound, false, from)
			if err != nil {
				t.Fatalf("connection %d from %s: %v", len(open)+1, text, err)
			}
			open = append(open, scope)
		}
		if _, err := m.OpenConnection(network.DirInbound, false, from); err == nil {
			t.Error("handshakes are not bounded")
		}
		if scope, err := m.OpenConnection(network.DirOutbound, true, from); err != nil {
			t.Errorf("those of others leave none for our own: %v", err)
		} else {
			scope.Done()
		}
		for _, scope := range open {
			scope.Done()
		}
	}
}

func TestConnectionsAreRateLimited(t *testing.T) {
	limiter := Limits{}.withDefaults().newRateLimiter()
	const burst = dialBurst * DefaultPerAddress
	for name, ip := range map[string]string{"IPv4": "203.0.113.7", "IPv6": "2600::1"} {
		allowed := 0
		for range 2 * burst {
			if limiter.Allow(netip.MustParseAddr(ip)) {
				allowed++
			}
		}
		if allowed < burst || allowed == 2*burst {
			t.Errorf("%d connections from one %s address at once, want about %d", allowed, name, burst)
		}
	}
	for range 2 * burst {
		if !limiter.Allow(netip.MustParseAddr("127.0.0.1")) {
			t.Fatal("loopback is limited")
		}
	}
}

// TestWindowsAreAccounted checks the bound on buffered memory: streams of one
// peer reserve their whole initial windows, until the peer's share of
// Limits.Memory is gone.
func TestWindowsAreAccounted(t *testing.T) {
	const memory = minMemory
	m, err := Limits{Memory: memory}.withDefaults().newResourceManager()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var reserved int64
	err = m.ViewPeer(idOf(t, 1), func(scope network.PeerScope) error {
		scope = accounted{scope}
		for range memory / initialWindow {
			span, err := scope.BeginSpan()
			if err != nil {
				return err
			}
			if err := span.ReserveMemory(yamuxWindow, 255); err != nil { // as yamux does
				return err
			}
			defer span.Done()
			reserved += initialWindow
			if got := scope.Stat().Memory; got != reserved {
				t.Errorf("%d bytes are accounted for, %d granted", got, reserved)
			}
		}
		return nil
	})
	if !errors.Is(err, network.ErrResourceLimitExceeded) || reserved > memory/peerShare || reserved < memory/peerShare/2 {
		t.Errorf("%d bytes of %d were granted to one peer, error %v", reserved, memory, err)
	}
}

// TestMuxerLeavesTheDefaultAlone: yamux.DefaultTransport is a global of libp2p.
func TestMuxerLeavesTheDefaultAlone(t *testing.T) {
	before := newMuxer(nil)
	before.MaxStreamWindowSize = 1
	after := newMuxer(nil)
	if after.MaxStreamWindowSize != maxWindow || after.InitialStreamWindowSize != initialWindow || after.MaxMessageSize != maxMessage {
		t.Errorf("windows of %d and %d, messages of %d", after.InitialStreamWindowSize, after.MaxStreamWindowSize, after.MaxMessageSize)
	}
	if yamux.DefaultTransport.MaxMessageSize == maxMessage {
		t.Error("the default has our message size")
	}
}

// TestExtremeLimits: the largest numbers bound nothing, and with the shortest time idle connections are closed soon.
func TestExtremeLimits(t *testing.T) {
	config := loopback()
	config.Limits = Limits{Memory: math.MaxInt64, Connections: math.MaxInt, PerAddress: math.MaxInt, Streams: math.MaxInt}
	a, b := start(t, config), start(t, config)
	stop, err := b.Handle(transport.ProtocolExchange, "run", echo)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, err := a.Connect(t.Context(), b.JoinAddresses()[0]); err != nil {
		t.Fatal(err)
	}
	s, err := a.Open(t.Context(), b.Self(), transport.ProtocolExchange, "run")
	if err != nil {
		t.Fatal(err)
	}
	s.Reset()
	m, err := config.Limits.withDefaults().newResourceManager()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	from := ma.StringCast("/ip4/203.0.113.7/tcp/1")
	if scope, err := m.OpenConnection(network.DirInbound, false, from); err != nil {
		t.Error(err)
	} else {
		scope.Done()
	}
	start(t, Config{Listen: []string{}, Limits: Limits{Idle: 1}}) // its end waits for what looks after connections
}
