package swim

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/bits"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// kept is for how long package p2pnet keeps a connection that carries nothing.
const kept = 90 * time.Second

// meter is a transport that knows which peers it was last joined with, and when.
type meter struct {
	*memnet.Transport
	mu   sync.Mutex
	last map[transport.PeerID]time.Time
	open map[transport.PeerID]int
}

func newMeter(t *memnet.Transport) *meter {
	return &meter{Transport: t, last: make(map[transport.PeerID]time.Time), open: make(map[transport.PeerID]int)}
}

func (m *meter) count(peer transport.PeerID, by int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last[peer] = time.Now()
	m.open[peer] += by
}

// connections is the number of connections that would be open.
func (m *meter) connections() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for peer, last := range m.last {
		if m.open[peer] > 0 || time.Since(last) < kept {
			n++
		}
	}
	return n
}

func (m *meter) Open(ctx context.Context, peer transport.PeerID, protocol transport.Protocol, run string) (transport.Stream, error) {
	s, err := m.Transport.Open(ctx, peer, protocol, run)
	if err != nil {
		return nil, err
	}
	return m.wrap(s), nil
}

func (m *meter) Handle(protocol transport.Protocol, run string, handler transport.Handler) (func(), error) {
	return m.Transport.Handle(protocol, run, func(s transport.Stream) { handler(m.wrap(s)) })
}

func (m *meter) wrap(s transport.Stream) transport.Stream {
	m.count(s.Remote(), 1)
	return &metered{Stream: s, over: sync.OnceFunc(func() { m.count(s.Remote(), -1) })}
}

type metered struct {
	transport.Stream
	over func()
}

func (s *metered) Close() error { s.over(); return s.Stream.Close() }
func (s *metered) Reset()       { s.over(); s.Stream.Reset() }

// wideMember starts a member of a flock whose connections are counted.
func wideMember(t *testing.T, n *memnet.Network, number int, config Config) (*member, *meter) {
	t.Helper()
	wire, err := n.Transport(fmt.Sprint("peer", number))
	if err != nil {
		t.Fatal(err)
	}
	counted := newMeter(wire)
	config.Transport, config.Run = counted, testRun
	m, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	one := &member{Membership: m, wire: wire}
	one.announce(t, 1, 0)
	return one, counted
}

// closeAll leaves at once, or the virtual time of two hundred departures adds up.
func closeAll(members []*member) {
	var all sync.WaitGroup
	for _, m := range members {
		all.Go(func() { m.Close(); m.wire.Close() })
	}
	all.Wait()
}

// crowd is the size of the wide flock: with 200, and -timeout 5m, the test takes a minute.
var crowd = flag.Int("crowd", WideAbove+8, "members of the wide flock")

// allCompared is by when all see all at the latest. Gossip takes seconds, but may leave one
// member out, which then hears what it has missed where it next compares its members with
// another's: every 45 s among 80.
const allCompared = 2 * 45 * time.Second

// wideFlock is one that grows and shrinks.
type wideFlock struct {
	t       *testing.T
	network *memnet.Network
	members []*member
	meters  []*meter
}

// grow adds members, who join the first, up to so many.
func (f *wideFlock) grow(upTo int) {
	f.t.Helper()
	for len(f.members) < upTo {
		m, counted := wideMember(f.t, f.network, len(f.members), Config{})
		if len(f.members) > 0 {
			m.join(f.t, f.members[0])
		}
		f.members, f.meters = append(f.members, m), append(f.meters, counted)
	}
	within(f.t, allCompared, f.members, "all see all", count(upTo))
}

// losesNobody sees for three minutes that all members see all, which is longer than what
// they held before they moved stays open.
func (f *wideFlock) losesNobody() {
	f.t.Helper()
	const moments, apart = 36, 5 * time.Second
	if moments*apart < idleTimeout+kept+10*time.Second {
		f.t.Fatal("connections of before may still be open")
	}
	for range moments {
		time.Sleep(apart)
		for _, m := range f.members {
			if got := len(m.Members()); got != len(f.members) {
				f.t.Fatalf("a member sees %d of %d", got, len(f.members))
			}
		}
	}
}

// keepsFewConnections: the membership takes a few connections of each, which leaves its
// share of 4·log₂ n + 8 to the overlay's links.
func (f *wideFlock) keepsFewConnections() {
	f.t.Helper()
	links := 2*bits.Len(uint(len(f.members)-1)) + 1
	most := 0
	for i, counted := range f.meters {
		if i > 0 { // the first was asked by everybody to join, and is returned to
			most = max(most, counted.connections())
		}
	}
	bound := 4*math.Log2(float64(len(f.members))) + 8
	f.t.Logf("at most %d connections for the membership, with the overlay's %d links the bound is %.0f", most, links, bound)
	if float64(most+links) > bound {
		f.t.Errorf("%d connections, and %d links to neighbours, are more than %.0f", most, links, bound)
	}
	if n := f.meters[0].connections(); float64(n+links) > bound {
		f.t.Errorf("the first member still has %d connections", n)
	}
	if n := f.meters[5].connections(); n > 16 {
		f.t.Errorf("%d connections after the move", n)
	}
}

// TestWideFlockKeepsFewConnections: many members find each other over a network. When the
// flock grows past WideAbove it goes over to datagrams without losing anybody, and keeps few
// connections; a crash is known to all; and it goes back when it shrinks.
func TestWideFlockKeepsFewConnections(t *testing.T) {
	t.Parallel()
	if underRace {
		t.Skip("takes minutes with the race detector; smaller flocks go by datagrams too")
	}
	synctest.Test(t, func(t *testing.T) {
		f := &wideFlock{t: t, network: newNetwork()}
		defer func() { closeAll(f.members) }()
		f.grow(WideAbove)
		time.Sleep(30 * time.Second)
		if n := f.meters[5].connections(); n < WideAbove/2 {
			t.Fatalf("%d connections in a flock of %d by streams", n, WideAbove)
		}
		f.grow(*crowd)
		f.losesNobody()
		f.keepsFewConnections()
		crashed := f.members[7]
		f.network.Crash(crashed.wire.Self())
		f.members = append(f.members[:7:7], f.members[8:]...)
		within(t, time.Minute, f.members, "the crash is known to all", count(len(f.members)))
		closeAll(append(f.members[narrowBelow-8:], crashed))
		f.members = f.members[:narrowBelow-8]
		within(t, time.Minute, f.members, "those that left are gone", count(len(f.members)))
		time.Sleep(2 * time.Minute)
		if n := f.meters[5].connections(); n < len(f.members)/2 {
			t.Errorf("%d connections after the move back", n)
		}
	})
}

// deaf is a transport whose datagrams a firewall drops.
type deaf struct{ *meter }

func (deaf) SendPacket(transport.PeerID, string, []byte) error { return nil }

// TestDatagramsThatAreDropped: who gets no answer takes streams, for what it has sent
// already too, and nobody is believed dead meanwhile.
func TestDatagramsThatAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork()
		var members []*member
		for i := range 6 {
			wire, err := network.Transport(fmt.Sprint("peer", i))
			if err != nil {
				t.Fatal(err)
			}
			var over transport.Transport = newMeter(wire)
			if i%2 == 1 {
				over = deaf{newMeter(wire)}
			}
			m, err := New(Config{Transport: over, Run: testRun, Carrier: Datagrams})
			if err != nil {
				t.Fatal(err)
			}
			one := &member{Membership: m, wire: wire}
			one.announce(t, 1, 0)
			if i > 0 {
				one.join(t, members[0])
			}
			members = append(members, one)
		}
		defer func() { closeAll(members) }()
		within(t, gossipMissed, members, "all see all", count(6))
		for range 1200 {
			time.Sleep(100 * time.Millisecond)
			for _, m := range members {
				if got := len(m.Members()); got != 6 {
					t.Fatalf("a member sees %d of 6", got)
				}
			}
		}
	})
}

// TestKeysKeepStrangersOut: members with a key in common find each other, by streams
// and by datagrams and while the key is changed, and nobody without.
func TestKeysKeepStrangersOut(t *testing.T) {
	old, fresh := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	for _, carrier := range []Carrier{Streams, Datagrams} {
		t.Run(fmt.Sprint(carrier), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := newNetwork()
				var members []*member
				for i, keys := range [][][]byte{{old}, {old, fresh}, {fresh, old}} {
					m, _ := wideMember(t, network, i, Config{Carrier: carrier, GossipKeys: keys})
					if i > 0 {
						m.join(t, members[i-1])
					}
					members = append(members, m)
				}
				defer func() { closeAll(members) }()
				within(t, 10*time.Second, members, "the key in common", count(3))
				for i, keys := range [][][]byte{nil, {bytes.Repeat([]byte{3}, 32)}} {
					stranger, _ := wideMember(t, network, 10+i, Config{Carrier: carrier, GossipKeys: keys})
					if err := stranger.Join(t.Context(), members[0].wire.Self()); err == nil {
						t.Errorf("a stranger with keys %v has joined", keys)
					}
					stranger.Close()
					stranger.wire.Close()
				}
				time.Sleep(time.Minute)
				within(t, time.Second, members, "only members", count(3))
			})
		})
	}
}

// streamsOnly is a transport that has no packets.
type streamsOnly struct{ transport.Transport }

func (streamsOnly) HandlePackets(string, func(transport.PeerID, []byte)) (stop func(), err error) {
	return nil, transport.ErrNoPackets
}

func TestConfigOfKeysAndCarrier(t *testing.T) {
	wire, err := newNetwork().Transport("one")
	if err != nil {
		t.Fatal(err)
	}
	defer wire.Close()
	if _, err := New(Config{Transport: streamsOnly{wire}, Run: testRun, Carrier: Datagrams}); !errors.Is(err, transport.ErrNoPackets) {
		t.Errorf("datagrams over a transport that has none: %v", err)
	}
	if _, err := New(Config{Transport: wire, Run: testRun, Carrier: 9}); err == nil {
		t.Error("an unknown carrier")
	}
	if _, err := New(Config{Transport: wire, Run: testRun, GossipKeys: [][]byte{make([]byte, 5)}}); err == nil {
		t.Error("a key of five bytes")
	}
}

// TestPartsOfCompounds: taken apart, a compound says the same, in parts that fit.
func TestPartsOfCompounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 1, 700), 1, 40).Draw(t, "messages")
		packet := compound(messages)
		if rapid.Bool().Draw(t, "checksum") {
			packet = append([]byte{messageCRC, 0, 0, 0, 0}, packet...)
		}
		parts, ok := partsOf(packet, maxPayload)
		if !ok {
			t.Fatal("not taken apart")
		}
		var got [][]byte
		for _, part := range parts {
			if len(part) > maxPayload {
				t.Fatalf("a part has %d bytes", len(part))
			}
			if len(parts) == 1 && part[0] == messageCRC {
				part = part[crcSize:]
			}
			at := 2 + 2*int(part[1])
			for i := range int(part[1]) {
				n := int(binary.BigEndian.Uint16(part[2+2*i:]))
				got, at = append(got, part[at:at+n]), at+n
			}
		}
		if len(got) != len(messages) {
			t.Fatalf("%d messages of %d", len(got), len(messages))
		}
		for i := range got {
			if !bytes.Equal(got[i], messages[i]) {
				t.Fatalf("message %d differs", i)
			}
		}
	})
}

// FuzzParts: what is no compound of memberlist's is left alone.
func FuzzParts(f *testing.F) {
	f.Add(compound([][]byte{bytes.Repeat([]byte{1}, 900), bytes.Repeat([]byte{2}, 900)}))
	f.Fuzz(func(t *testing.T, packet []byte) {
		parts, ok := partsOf(packet, maxPayload)
		total := 0
		for _, part := range parts {
			total += len(part)
			if len(part) > maxPayload {
				t.Errorf("a part of %d bytes", len(part))
			}
		}
		if ok && total > 2*len(packet)+2 {
			t.Errorf("%d bytes became %d", len(packet), total)
		}
	})
}
