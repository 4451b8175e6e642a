package p2pnet

import (
	"fmt"
	"io"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestModelStreamsGetTheirWindows: libp2p gives 16 MiB to one peer's streams of one
// protocol, and yamux silently does not grow a window that is refused, which makes a
// stream slow without an error. Here a peer has room for all lanes at full windows, which
// are memory at who reads, and which yamux takes only while half is left.
func TestModelStreamsGetTheirWindows(t *testing.T) {
	m, err := Limits{}.withDefaults().newResourceManager()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	const asked = 128 // the priority with which yamux asks for more
	err = m.ViewPeer(idOf(t, 1), func(scope network.PeerScope) error {
		for range 1 + transport.MaxLane {
			span, err := accounted{scope}.BeginSpan()
			if err != nil {
				return err
			}
			defer span.Done()
			for window := initialWindow; window < maxWindow; window *= 2 {
				if err := span.ReserveMemory(window, asked); err != nil {
					return fmt.Errorf("a lane's window of %d: %w", window, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFourStreamsAreNotTheMost: with libp2p's PeerDefault the fifth inbound stream of a
// peer is reset.
func TestFourStreamsAreNotTheMost(t *testing.T) {
	a, b := pair(t)
	handle(t, b, speak, run, echo)
	for i := range DefaultStreams {
		s := open(t, a, b, speak, run)
		if _, err := io.WriteString(s, "x"); err != nil {
			t.Fatalf("stream %d: %v", i+1, err)
		}
		if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
			t.Fatalf("stream %d: %v", i+1, err)
		}
	}
}

// TestConnectionLimit: Limits.Connections is kept to, in handshakes too, and by members.
func TestConnectionLimit(t *testing.T) {
	config := loopback()
	config.Limits.Connections = 3
	b := start(t, config)
	var reached int
	handle(t, b, speak, run, echo)
	for range 6 {
		a := start(t, Config{Listen: []string{}})
		a.Learn(b.Self(), b.Addresses())
		b.Learn(a.Self(), nil)
		s, err := a.Open(t.Context(), b.Self(), speak, run)
		if err != nil {
			continue
		}
		if _, err := io.WriteString(s, "x"); err == nil {
			if _, err := io.ReadFull(s, make([]byte, 1)); err == nil {
				reached++
			}
		}
		t.Cleanup(s.Reset)
	}
	if reached != 3 || b.Connections() > 3 {
		t.Errorf("%d peers were served over %d connections, at most 3 are allowed", reached, b.Connections())
	}
}
