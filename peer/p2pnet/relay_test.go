package p2pnet

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// relayed runs a relay, a peer that listens nowhere but through it, and a third that
// knows of the two what their records say.
func relayed(t *testing.T) (relay, hidden, third *Transport) {
	t.Helper()
	config := loopback()
	config.Relay.Serve = true
	relay = start(t, config)
	hidden = start(t, Config{Listen: []string{}, Relay: Relay{Via: relay.JoinAddresses()}})
	third = start(t, Config{Listen: []string{}})
	third.Learn(relay.Self(), relay.Addresses())
	third.Learn(hidden.Self(), hidden.Addresses())
	eventually(t, "the hidden peer has its place", func() bool { return relay.relays.reserved(hidden.id) })
	return relay, hidden, third
}

// TestReachedThroughARelay: a peer that cannot be dialled is, through another, and
// proves to be itself; its address fits a record.
func TestReachedThroughARelay(t *testing.T) {
	relay, hidden, third := relayed(t)
	addresses := hidden.Addresses()
	if len(addresses) != 1 || len(addresses[0]) > transport.MaxAddressSize {
		t.Fatalf("addresses %q", addresses)
	}
	handle(t, hidden, speak, run, echo)
	s := open(t, third, hidden, speak, run)
	if s.Remote() != hidden.Self() {
		t.Errorf("the other end is %s", s.Remote())
	}
	// More than libp2p lets through a relay by default: models are.
	text := strings.Repeat("murmuration", 100_000)
	done := make(chan string)
	go func() { done <- ask(t, s, text) }()
	if got := receive(t, "an echo through the relay", done); got != text {
		t.Errorf("%d bytes of %d came back", len(got), len(text))
	}
	for _, c := range third.swarm.ConnsToPeer(hidden.id) {
		if !isCircuit(c.RemoteMultiaddr()) {
			t.Errorf("a direct connection to %s", c.RemoteMultiaddr())
		}
	}
	if relay.Connections() != 2 {
		t.Errorf("the relay has %d connections", relay.Connections())
	}
}

// TestJoinThroughARelay: who joins by a relayed address needs to know nothing else,
// but the id behind the relay.
func TestJoinThroughARelay(t *testing.T) {
	_, hidden, _ := relayed(t)
	join := hidden.JoinAddresses()
	if len(join) != 1 {
		t.Fatalf("join addresses %q", join)
	}
	stranger := start(t, Config{Listen: []string{}})
	if id, err := stranger.Connect(t.Context(), join[0]); err != nil || id != hidden.Self() {
		t.Errorf("met %s, error %v", id, err)
	}
	without, _, _ := strings.Cut(join[0], circuitSuffix)
	if _, err := stranger.Connect(t.Context(), without+circuitSuffix); err == nil {
		t.Error("connected to nobody in particular behind a relay")
	}
}

// TestRelayPlaceIsKept: the place is taken again when the relay has lost it, and the
// connection that it hangs on is not closed for idleness at either end.
func TestRelayPlaceIsKept(t *testing.T) {
	t.Parallel()
	config := loopback()
	config.Relay.Serve, config.Limits.Idle = true, 200*time.Millisecond
	relay := start(t, config)
	hidden := start(t, Config{Listen: []string{}, Relay: Relay{Via: relay.JoinAddresses()}, Limits: Limits{Idle: 200 * time.Millisecond}})
	eventually(t, "the place", func() bool { return relay.relays.reserved(hidden.id) })
	time.Sleep(time.Second) // against the real clock: sockets are real
	if relay.Connections() != 1 {
		t.Fatal("the connection that a place hangs on was closed")
	}
	for _, c := range relay.swarm.Conns() {
		_ = c.Close()
	}
	eventually(t, "the place is lost", func() bool { return relay.Connections() == 0 || relay.relays.reserved(hidden.id) })
	eventually(t, "the place is taken again", func() bool { return relay.Connections() == 1 && relay.relays.reserved(hidden.id) })
}

// Pitfall: a place ends with the connection. Where something else had connected with the
// relay anew before anybody looked, the loss went unnoticed for twenty minutes.
func TestRelayPlaceIsTakenAgainOnANewConnection(t *testing.T) {
	t.Parallel()
	relay, hidden, _ := relayed(t)
	relay.Disconnect(hidden.Self())
	eventually(t, "the place is lost", func() bool { return relay.Connections() == 0 && !relay.relays.reserved(hidden.id) })
	connectTo(t, hidden, relay)
	eventually(t, "the place is taken again", func() bool { return relay.relays.reserved(hidden.id) })
}

// TestRelayConfig: faults are found before anything listens.
func TestRelayConfig(t *testing.T) {
	id := idOf(t, 1).String()
	for _, via := range [][]string{{"192.0.2.7:1"}, {"nonsense"}, {"relay:" + id}, make([]string, MaxRelays+1)} {
		if _, err := New(Config{Listen: []string{}, Relay: Relay{Via: via}}); err == nil {
			t.Errorf("took %q", via)
		}
	}
}

// TestRelayServesMembersOnly: who takes part in nothing of a relay gets no place, and no
// way to those that have one; who makes itself known when it is refused gets both.
func TestRelayServesMembersOnly(t *testing.T) {
	var members insiders
	members.let()
	config := loopback()
	config.Relay.Serve = true
	config.Member = func(id transport.PeerID) error {
		if !members.has(id) {
			return transport.ErrNotAdmitted
		}
		return nil
	}
	at := start(t, config)
	stranger := start(t, Config{Listen: []string{}})
	stranger.Learn(at.Self(), at.Addresses())
	relays, err := parseAddress(at.JoinAddresses()[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.relays.reserve(relays); err == nil || at.relays.reserved(stranger.id) {
		t.Errorf("a stranger has a place at the relay: %v", err)
	}

	// like is a process that is made a member when it asks for it, as by a hello.
	var asked atomic.Int64
	like := func(seed byte, via ...string) *Transport {
		return start(t, Config{Identity: seeded(seed), Listen: []string{}, Relay: Relay{Via: via}, Introduce: func(_ context.Context, relay transport.PeerID) error {
			if asked.Add(1); relay != at.Self() {
				t.Errorf("asked to make itself known to %s", relay)
			}
			members.let(append(*members.ids.Load(), transport.PeerID(idOf(t, seed).String()))...)
			return nil
		}})
	}
	hidden := like(11, at.JoinAddresses()...)
	eventually(t, "the hidden peer has its place", func() bool { return at.relays.reserved(hidden.id) })
	if _, err := stranger.Connect(t.Context(), hidden.JoinAddresses()[0]); !errors.Is(err, transport.ErrUnreachable) {
		t.Errorf("a stranger's way through the relay: %v", err)
	}
	joiner := like(12)
	if id, err := joiner.Connect(t.Context(), hidden.JoinAddresses()[0]); err != nil || id != hidden.Self() {
		t.Errorf("met %s, error %v", id, err)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("asked %d times to be made known, want once each", n)
	}
}

// A place at a relay is good by any two clocks: the relay writes when it ends, and the
// peer refuses one that by its own clock has ended.
func TestARelayedPlaceAtAnyDate(t *testing.T) {
	config := loopback()
	config.Relay.Serve = true
	relay, guest := start(t, config), start(t, Config{Listen: []string{}})
	if _, err := guest.Connect(t.Context(), relay.JoinAddresses()[0]); err != nil {
		t.Fatal(err)
	}
	place, err := client.Reserve(t.Context(), guest.host, peer.AddrInfo{ID: relay.id})
	if err != nil {
		t.Fatal(err)
	}
	late := time.Date(2091, 1, 1, 0, 0, 0, 0, time.UTC)
	if term := time.Until(place.Expiration); place.Expiration.Before(late) || time.Unix(0, 0).Add(term).Before(late) {
		t.Errorf("a place of today ends in %d, one of 1970 in %d", place.Expiration.Year(), time.Unix(0, 0).Add(term).Year())
	}
}
