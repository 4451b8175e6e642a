package swim

import (
	"bytes"
	"compress/lzw"
	"encoding/binary"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// The tests of this file are about what memberlist does that one would not expect.
// docs/design/016 lists them with those that have their test elsewhere.

// packed is a map in MessagePack, as memberlist writes its messages; values are uint32,
// byte, bool, string or []byte.
func packed(kind byte, fields ...any) []byte {
	b := []byte{kind, 0x80 | byte(len(fields)/2)}
	bin := func(text string) {
		b = append(b, 0xda)
		b = binary.BigEndian.AppendUint16(b, uint16(len(text)))
		b = append(b, text...)
	}
	for _, f := range fields {
		switch v := f.(type) {
		case uint32:
			b = binary.BigEndian.AppendUint32(append(b, 0xce), v)
		case string:
			bin(v)
		case []byte:
			bin(string(v))
		case byte:
			b = append(b, v)
		case bool:
			b = append(b, map[bool]byte{false: 0xc2, true: 0xc3}[v])
		}
	}
	return b
}

// whisper sends raw packets to a member in the name of another.
func whisper(t *testing.T, from transport.Transport, to transport.PeerID, packets ...[]byte) {
	t.Helper()
	s, err := from.Open(t.Context(), to, transport.ProtocolSwim, testRun)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	frame := []byte{kindPackets}
	for _, p := range packets {
		frame = append(binary.BigEndian.AppendUint16(frame, uint16(len(p))), p...)
	}
	if _, err := s.Write(frame); err != nil {
		t.Fatal(err)
	}
}

// memberlist panics on metadata of 513 bytes: it is never given them.
func TestPitfallMetadataOf513Bytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		m := start(t, n, "a")
		record := m.record(1, 0)
		record.Addresses = nil
		for range transport.MaxAddresses {
			record.Addresses = append(record.Addresses, strings.Repeat("a", transport.MaxAddressSize+1))
		}
		if err := m.Announce(record); err == nil {
			t.Error("an oversize record was announced")
		}
		for i, address := range record.Addresses {
			record.Addresses[i] = address[1:]
		}
		if err := m.Announce(record); err != nil {
			t.Error(err)
		}
		if size := len((*delegate)(m.Membership).NodeMeta(0)); size == 0 || size > memberlist.MetaMaxSize {
			t.Errorf("memberlist is given %d bytes", size)
		}
	})
}

// memberlist calls who has left and who has crashed alike: the last record tells.
func TestPitfallLeavingLooksLikeACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const leaving = 2
		n := newNetwork()
		members := cluster(t, n, 4)
		within(t, gossipMissed, members, "joined", count(4))
		record := members[3].record(1, 9)
		record.Flags = leaving
		if err := members[3].Announce(record); err != nil {
			t.Fatal(err)
		}
		members[3].Close()
		n.Crash(members[2].wire.Self())
		within(t, 20*time.Second, members[:2], "two are gone", count(2))
		for _, m := range members[:2] {
			if m.lastSaid(members[3].wire.Self()).Flags != leaving {
				t.Error("who has left is not known to have left")
			}
			if m.lastSaid(members[2].wire.Self()).Flags == leaving {
				t.Error("who has crashed is taken for one that has left")
			}
		}
	})
}

// memberlist calls its delegates under the lock that Members and UpdateNode take, and
// waits for a channel of events that is full: here nobody needs to take the news, and
// who takes it may ask and announce at once.
func TestPitfallCallbacksUnderTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		host := start(t, n, "host")
		host.announce(t, 1, 0)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range uint64(20) {
				<-host.Changed()
				host.Members()
				if host.Announce(host.record(1, i)) != nil {
					return
				}
			}
		}()
		deaf := []*member{host}
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			m := start(t, n, name)
			m.announce(t, 1, 0)
			m.join(t, host)
			deaf = append(deaf, m)
		}
		within(t, gossipMissed, deaf, "members who do not listen see each other", count(6))
		<-done
	})
}

// memberlist panics if it is left after its shutdown.
func TestPitfallLeaveAfterShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := start(t, newNetwork(), "a")
		for range 3 {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// memberlist's shutdown leaves goroutines behind: a bubble ends at once after Close
// only if there are none.
func TestPitfallShutdownDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		members := cluster(t, n, 3)
		time.Sleep(3300 * time.Millisecond)
		n.Cut(members[0].wire.Self(), members[1].wire.Self())
		time.Sleep(1700 * time.Millisecond) // with a probe under way
		before := runtime.NumGoroutine()
		members[0].Close()
		synctest.Wait()
		if after := runtime.NumGoroutine(); after >= before {
			t.Errorf("%d goroutines before Close, %d after it", before, after)
		}
	})
}

// memberlist resolves two nodes of a name by the first that came, and tells the later
// one nothing. A name comes with one address here, so there is nothing to resolve: who
// claims another's is refused.
func TestPitfallNameConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		members := cluster(t, n, 3)
		within(t, gossipMissed, members, "joined", count(3))
		victim := members[2]
		mallory, err := n.Transport("mallory")
		if err != nil {
			t.Fatal(err)
		}
		defer mallory.Close()
		claim := packed(4, "Incarnation", uint32(99), "Node", string(victim.wire.Self()), "Addr", []byte(advertiseIP(mallory.Self())),
			"Port", uint32(advertisePort), "Meta", victim.book.own.nodeMeta(), "Vsn", []byte{1, 5, 5, 0, 0, 0})
		whisper(t, mallory, members[0].wire.Self(), claim)
		time.Sleep(time.Second)
		for _, node := range members[0].list.Members() {
			if node.Name == string(victim.wire.Self()) && !node.Addr.Equal(advertiseIP(victim.wire.Self())) {
				t.Errorf("the victim's address is %v now", node.Addr)
			}
		}
		within(t, 0, members, "still there", count(3))
	})
}

// memberlist's Join succeeds where the other end vetoes the joiner, which then sees a
// member that does not see it: that is why a hello decides who has joined.
func TestPitfallVetoedJoinSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		host, guest := start(t, n, "host"), start(t, n, "guest")
		host.book.admission = nobody{}
		host.announce(t, 1, 0)
		guest.announce(t, 1, 0)
		if err := guest.Join(t.Context(), host.wire.Self()); err != nil {
			t.Errorf("memberlist has changed, the join fails: %v", err)
		}
		time.Sleep(time.Second)
		if got := len(guest.Members()); got != 2 {
			t.Errorf("the guest sees %d members", got)
		}
		if got := len(host.Members()); got != 1 {
			t.Errorf("the host sees %d members, want itself", got)
		}
	})
}

type nobody struct{ everybody }

func (nobody) Admit(transport.PeerID, []byte) error { return transport.ErrNotAdmitted }

// Whoever takes part may say that another is dead, or has left, in the other's own name,
// and memberlist asks nobody's leave to believe it. Here it becomes a suspicion, which the
// victim denies before anybody believes it.
func TestPitfallForgedDeath(t *testing.T) {
	for name, c := range map[string]struct {
		from        int
		incarnation uint32
	}{
		"death":                          {0, 50},
		"departure":                      {2, 50},
		"death without an answer":        {0, math.MaxUint32},
		"departure without an answer":    {2, math.MaxUint32},
		"death just below the wrap":      {0, math.MaxUint32 - 1},
		"death at the edge of the bound": {0, incarnationRoom + 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				members := cluster(t, n, 5)
				within(t, gossipMissed, members, "joined", count(5))
				victim, liar := members[2], members[4]
				for range 20 {
					lie := packed(messageDead, "Incarnation", c.incarnation, "Node", string(victim.wire.Self()), "From", string(members[c.from].wire.Self()))
					for _, m := range members[:4] {
						whisper(t, liar.wire, m.wire.Self(), lie)
					}
					for range 100 {
						time.Sleep(10 * time.Millisecond)
						// The liar's lies take the place of what it says as a member, so that
						// it may be missed itself.
						for i, m := range members[:4] {
							for j, other := range members[:4] {
								if !m.lists(other.wire.Self()) {
									t.Fatalf("member %d does not see member %d", i, j)
								}
							}
						}
					}
				}
				n.Crash(victim.wire.Self())
				within(t, 20*time.Second, append(members[:2:2], members[3:]...), "a death that is one is seen", count(4))
			})
		})
	}
}

// memberlist has panicked on an alive message with few versions (#368), and unpacked
// whatever a compressed one held (#362; 40 MiB at most by now). The former is refused,
// the latter dropped before it is unpacked.
func TestPitfallMalformedPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		members := cluster(t, n, 2)
		within(t, gossipMissed, members, "joined", count(2))
		mallory, err := n.Transport("mallory")
		if err != nil {
			t.Fatal(err)
		}
		defer mallory.Close()
		alive := func(vsn ...byte) []byte {
			return packed(4, "Incarnation", uint32(1), "Node", string(mallory.Self()), "Addr", []byte(advertiseIP(mallory.Self())),
				"Port", uint32(advertisePort), "Meta", make([]byte, memberlist.MetaMaxSize+1), "Vsn", vsn)
		}
		var bomb bytes.Buffer
		w := lzw.NewWriter(&bomb, lzw.LSB, 8)
		w.Write(make([]byte, 16<<20))
		w.Close()
		small := packed(messageCompress, "Algo", uint32(0), "Buf", bomb.Bytes()[:maxPacket-100])
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		whisper(t, mallory, members[0].wire.Self(), alive(), alive(1), alive(1, 5, 5), alive(1, 5, 5, 0, 0, 0), []byte{255}, []byte{messageCompound, 9},
			small, small, append([]byte{messageCompound, 1, byte(len(small) >> 8), byte(len(small))}, small...))
		time.Sleep(time.Second)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
			t.Errorf("the packets have cost %d bytes", used)
		}
		time.Sleep(20 * time.Second)
		within(t, 0, members, "unmoved", count(2))
	})
}
