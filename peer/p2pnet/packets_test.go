package p2pnet

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

type letter struct {
	from   transport.PeerID
	packet string
}

// takeAll hands what arrives to a channel.
func takeAll(t testing.TB, at *Transport, run string) <-chan letter {
	t.Helper()
	letters := make(chan letter, 64)
	stop, err := at.HandlePackets(run, func(from transport.PeerID, packet []byte) { letters <- letter{from, string(packet)} })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return letters
}

// TestPackets: packets reach the run that they are for, both ways, from the first one
// on, without a connection.
func TestPackets(t *testing.T) {
	a, b := start(t, loopback()), start(t, loopback())
	a.Learn(b.Self(), b.Addresses())
	b.Learn(a.Self(), a.Addresses())
	atA, atB, other := takeAll(t, a, run), takeAll(t, b, run), takeAll(t, b, "other")
	long := strings.Repeat("x", maxMarkedPacket)
	for _, text := range []string{"one", "", long} {
		if err := a.SendPacket(b.Self(), run, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, "a packet", atB); got.from != a.Self() || got.packet != text {
			t.Errorf("%d bytes came from %s", len(got.packet), got.from)
		}
	}
	if err := b.SendPacket(a.Self(), run, []byte("back")); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, "an answer", atA); got.from != b.Self() || got.packet != "back" {
		t.Errorf("%+v", got)
	}
	if err := a.SendPacket(b.Self(), "other", []byte("two")); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, "a packet of another run", other); got.packet != "two" {
		t.Errorf("%+v", got)
	}
	if a.Connections() != 0 || b.Connections() != 0 {
		t.Error("packets took a connection")
	}
	if err := a.SendPacket(b.Self(), run, []byte(long+"x")); !errors.Is(err, transport.ErrNoPackets) {
		t.Errorf("a packet too large: %v", err)
	}
}

// TestPacketsNeedASocket: who listens nowhere has none to take packets at.
func TestPacketsNeedASocket(t *testing.T) {
	a, b := start(t, Config{Listen: []string{}}), start(t, loopback())
	a.Learn(b.Self(), b.Addresses())
	if _, err := a.HandlePackets(run, func(transport.PeerID, []byte) {}); !errors.Is(err, transport.ErrNoPackets) {
		t.Errorf("taking packets: %v", err)
	}
	if err := a.SendPacket(b.Self(), run, nil); !errors.Is(err, transport.ErrNoPackets) {
		t.Errorf("sending: %v", err)
	}
}

// TestForgedDatagrams: nothing is handed over that was changed, cut, meant for
// somebody else, or comes from a peer that nobody has told of.
func TestForgedDatagrams(t *testing.T) {
	a, b, c := start(t, loopback()), start(t, loopback()), start(t, loopback())
	b.Learn(a.Self(), a.Addresses())
	letters := takeAll(t, b, run)
	b.datagrams.strangers.SetLimit(0)
	b.datagrams.strangers.AllowN(time.Now(), strangersPerSecond) // there have been many strangers
	from := netip.MustParseAddrPort("127.0.0.1:9")
	good := appendDatagram(nil, a.key, b.Self(), run, []byte("hello"))
	for name, datagram := range map[string][]byte{
		"changed":        append(bytes.Replace(good, []byte("hello"), []byte("jello"), 1), nil...),
		"cut":            good[:len(good)-1],
		"longer":         append(bytes.Clone(good), 0),
		"empty":          {},
		"to another":     appendDatagram(nil, a.key, c.Self(), run, []byte("hello")),
		"of nobody":      appendDatagram(nil, c.key, b.Self(), run, []byte("hello")),
		"of another run": appendDatagram(nil, a.key, b.Self(), "another", []byte("hello")),
		"too large":      append(bytes.Clone(good), make([]byte, 2*transport.MaxPacket)...),
	} {
		if b.takeDatagram(datagram, from) == nil {
			t.Errorf("taken: %s", name)
		}
	}
	if err := b.takeDatagram(good, from); err != nil {
		t.Error(err)
	}
	if got := receive(t, "the one that is good", letters); got.packet != "hello" || len(letters) != 0 {
		t.Errorf("%+v, and %d more", got, len(letters))
	}
	// The same over the wire, where it is counted.
	socket, err := net.Dial("udp4", hostPort(t, b))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if _, err := socket.Write([]byte("MUR\x01 and no more")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is counted", func() bool { return b.Refused()["bad datagram"] == 1 })
}

// FuzzDatagram: whatever arrives, nothing in it is believed longer than it is.
func FuzzDatagram(f *testing.F) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	f.Add(appendDatagram(nil, key, "peer", "digits", []byte("hello")))
	f.Add([]byte(datagramMagic))
	f.Fuzz(func(t *testing.T, datagram []byte) {
		public, run, packet, err := splitDatagram(datagram)
		if err != nil {
			return
		}
		if len(public) != ed25519.PublicKeySize || len(run) > transport.MaxRunName || len(packet) > maxMarkedPacket {
			t.Errorf("key of %d, run of %d, packet of %d bytes", len(public), len(run), len(packet))
		}
		whole := append([]byte(datagramMagic), public...)
		whole = append(append(whole, byte(len(run))), run...)
		whole = append(append(whole, packet...), datagram[len(datagram)-ed25519.SignatureSize:]...)
		if !bytes.Equal(whole, datagram) {
			t.Error("read back otherwise")
		}
	})
}
