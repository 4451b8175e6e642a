package swim

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

func addressOf(peer transport.PeerID) memberlist.Address {
	return memberlist.Address{Name: string(peer), Addr: advertiseIP(peer).String()}
}

// pingOf is a packet that whoever is no member may send too.
func pingOf(from *nodeTransport, number uint32) []byte {
	return packed(messagePing, "SeqNo", number, "Node", "", "SourceNode", string(from.over.Self()))
}

// carriers starts transports without memberlist on top.
func carriers(t *testing.T, names ...string) (*memnet.Network, []*nodeTransport) {
	t.Helper()
	n := newNetwork()
	var all []*nodeTransport
	for _, name := range names {
		wire, err := n.Transport(name)
		if err != nil {
			t.Fatal(err)
		}
		c := newTransport(wire, testRun, newBook(wire, testRun, 1, func() {}), newStragglers(), newPackets(wire, testRun, Streams, nil))
		stop, err := wire.Handle(transport.ProtocolSwim, testRun, c.in.handle)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			c.Shutdown()
			stop()
			wire.Close()
		})
		all = append(all, c)
	}
	return n, all
}

func TestPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := carriers(t, "a", "b")
		a, b := c[0], c[1]
		to := addressOf(b.over.Self())
		receive := func(number uint32) {
			want := string(pingOf(a, number))
			t.Helper()
			select {
			case p := <-b.in.packets:
				if string(p.Buf) != want || p.From != peerAddr(a.over.Self()) {
					t.Errorf("received %q from %v, want %q", p.Buf, p.From, want)
				}
			case <-time.After(time.Second):
				t.Errorf("%q did not arrive", want)
			}
		}
		for i := range 3 {
			a.WriteToAddress(pingOf(a, uint32(i)), to)
		}
		for i := range 3 {
			receive(uint32(i))
		}

		// After a departure the stream is closed, and the next packet opens another
		// without delay.
		a.forsake(b.over.Self())
		time.Sleep(time.Millisecond)
		if open := a.over.Connections(); open != 0 {
			t.Errorf("%d connections are kept to a departed peer", open)
		}
		a.WriteToAddress(pingOf(a, 7), to)
		receive(7)

		// A peer that cannot be reached costs no time and gives no error.
		n.Cut(a.over.Self(), b.over.Self())
		began := time.Now()
		for range 10 * packetQueue {
			if _, err := a.WriteToAddress(make([]byte, maxPacket), to); err != nil {
				t.Fatal(err)
			}
		}
		for _, nobody := range []transport.PeerID{"", "nobody", a.over.Self()} {
			if _, err := a.WriteToAddress([]byte("x"), addressOf(nobody)); err != nil {
				t.Errorf("to %q: %v", nobody, err)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("writing took %v", took)
		}
		a.forsake(b.over.Self())
		time.Sleep(time.Minute / 2)
		n.HealAll()
		for len(b.in.packets) > 0 {
			<-b.in.packets
		}
		time.Sleep(time.Second)
		for len(b.in.packets) > 0 {
			<-b.in.packets
		}
		a.WriteToAddress(pingOf(a, 8), to)
		receive(8)

		// Idle streams are closed.
		time.Sleep(2 * idleTimeout)
		a.mu.Lock()
		senders, streams := len(a.senders), len(a.streams)
		a.mu.Unlock()
		if senders != 0 || streams != 0 || a.over.Connections() != 0 {
			t.Errorf("idle, there are still %d senders, %d streams, %d connections", senders, streams, a.over.Connections())
		}
	})
}

func TestShutdownSendsWhatIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := carriers(t, "a", "b")
		a, b := c[0], c[1]
		a.WriteToAddress(pingOf(a, 9), addressOf(b.over.Self()))
		stop := make(chan struct{})
		go func() {
			defer close(stop)
			p := <-b.in.packets
			if !bytes.Equal(p.Buf, pingOf(a, 9)) {
				t.Errorf("received %q", p.Buf)
			}
		}()
		a.Shutdown()
		<-stop
		if _, err := a.WriteToAddress([]byte("late"), addressOf(b.over.Self())); err == nil {
			t.Error("a packet was taken after the shutdown")
		}
		if _, err := a.DialAddressTimeout(addressOf(b.over.Self()), time.Second); err == nil {
			t.Error("dialled after the shutdown")
		}
		a.closing = make(chan struct{}) // for the second one, in the cleanup
	})
}

// TestInboundStreams sends what a broken or hostile peer might.
func TestInboundStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := carriers(t, "a", "b")
		a, b := c[0], c[1]
		ends := func(name string, within time.Duration, bytes ...byte) {
			t.Helper()
			s, err := a.over.Open(t.Context(), b.over.Self(), transport.ProtocolSwim, testRun)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Reset()
			s.Write(bytes)
			s.SetReadDeadline(time.Now().Add(within))
			began := time.Now()
			if _, err := s.Read(make([]byte, 1)); err == nil || time.Since(began) >= within {
				t.Errorf("%s: still open after %v", name, within)
			}
		}
		oversize := binary.BigEndian.AppendUint16([]byte{kindPackets}, maxPacket+1)
		ends("unknown kind", time.Second, 9)
		ends("oversize packet", time.Second, oversize...)
		ends("empty packet", time.Second, kindPackets, 0, 0)
		ends("silence", kindTimeout+time.Second)
		ends("half a packet", 2*idleTimeout, kindPackets, 0, 9, 'x')
		if len(b.in.packets) != 0 {
			t.Errorf("%d packets got through", len(b.in.packets))
		}
	})
}

func TestOnePacketStreamPerPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := carriers(t, "a", "b")
		a, b := c[0], c[1]
		for range 5 {
			s, err := a.open(b.over.Self(), kindPackets, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			defer a.drop(s)
		}
		for range 2 * maxSyncs {
			s, err := a.open(b.over.Self(), kindSync, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			defer a.drop(s)
		}
		time.Sleep(time.Second)
		b.mu.Lock()
		defer b.mu.Unlock()
		if got, want := len(b.streams), 1+maxSyncs; got != want {
			t.Errorf("%d inbound streams are kept, want %d", got, want)
		}
	})
}

// TestStragglersKnowMemberlistsPackets checks the recognition of probes against
// what memberlist really sends.
func TestStragglersKnowMemberlistsPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		members := cluster(t, n, 4)
		time.Sleep(10 * time.Second)
		g := members[0].carrier.busy
		g.mu.Lock()
		probedAt := g.probedAt
		g.mu.Unlock()
		if time.Since(probedAt) > 2*probeInterval {
			t.Error("no probe was recognized")
		}
		g.settle(settleTimeout)
		if g.probing() {
			t.Error("a probe that was answered was not recognized as ended")
		}
		n.Cut(members[0].wire.Self(), members[1].wire.Self())
		time.Sleep(10 * time.Second)
		asked := slices.ContainsFunc(members, func(m *member) bool {
			m.carrier.busy.mu.Lock()
			defer m.carrier.busy.mu.Unlock()
			return time.Since(m.carrier.busy.asked) < 10*time.Second
		})
		if !asked {
			t.Error("no probe on another's behalf was recognized")
		}
		within(t, 0, members, "a single cut link costs nobody", count(4))
	})
}

func TestFirstMessage(t *testing.T) {
	for name, c := range map[string]struct {
		packet []byte
		want   int
	}{
		"empty":              {nil, -1},
		"ping":               {[]byte{messagePing, 1, 2}, messagePing},
		"checksum":           {[]byte{messageCRC, 1, 2, 3, 4, messageIndirectPing}, messageIndirectPing},
		"compound":           {[]byte{messageCompound, 2, 0, 1, 0, 1, messageIndirectPing, 4}, messageIndirectPing},
		"truncated compound": {[]byte{messageCompound, 200, 0}, -1},
	} {
		if got := firstMessage(c.packet); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
