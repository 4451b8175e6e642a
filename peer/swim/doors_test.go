package swim

import (
	"bytes"
	"compress/lzw"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// tell begins a conversation with a member, says something, and leaves it at that. It
// reports whether the other end took it for a push and pull, and so answered with one.
func tell(t *testing.T, from transport.Transport, to transport.PeerID, bytes []byte) (answered bool) {
	t.Helper()
	s, err := from.Open(t.Context(), to, transport.ProtocolSwim, testRun)
	if err != nil {
		t.Error(err)
		return false
	}
	defer s.Reset()
	if _, err := s.Write(append([]byte{kindSync}, bytes...)); err != nil {
		t.Error(err)
		return false
	}
	s.SetReadDeadline(time.Now().Add(time.Second))
	var greeting [2]byte
	if _, err := io.ReadFull(s, greeting[:]); err != nil {
		return false
	}
	if _, err := io.CopyN(io.Discard, s, int64(binary.BigEndian.Uint16(greeting[:]))); err != nil {
		return false
	}
	var kind [1]byte
	_, err = io.ReadFull(s, kind[:])
	return err == nil && kind[0] == messagePushPull
}

// header is that of a push and pull, as memberlist writes it.
func header(nodes, userState uint32) []byte {
	b := append([]byte{messagePushPull, 0x83, 0xa5}, "Nodes"...)
	b = binary.BigEndian.AppendUint32(append(b, 0xce), nodes)
	b = append(append(b, 0xac), "UserStateLen"...)
	b = binary.BigEndian.AppendUint32(append(b, 0xce), userState)
	return append(append(append(b, 0xa4), "Join"...), 0xc2)
}

// squeezed is a message that unpacks to another.
func squeezed(message []byte) []byte {
	var code bytes.Buffer
	w := lzw.NewWriter(&code, lzw.LSB, 8)
	w.Write(message)
	w.Close()
	return packed(messageCompress, "Algo", uint32(0), "Buf", code.Bytes())
}

// TestAttack36BytesCost112MiB: what a conversation costs is what is said in it. memberlist
// makes room for as many nodes as a header announces, and unpacks what is compressed.
func TestAttack36BytesCost112MiB(t *testing.T) {
	const million = 1 << 20
	for name, message := range map[string][]byte{
		"a header of 36 bytes":      header(million, 0),
		"a million empty nodes":     squeezed(append(header(million, 0), bytes.Repeat([]byte{0x80}, million)...)),
		"40 MB in 31 KB":            squeezed(append(header(1, 0), make([]byte, 39<<20)...)),
		"20 MB of the user's state": header(0, 20<<20),
		"20 MB of a user's message": append(append([]byte{8, 0x81, 0xaa}, "UserMsgLen"...), 0xce, 1, 0x40, 0, 0),
	} {
		for _, member := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, of a member %v", name, member), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newNetwork()
					members := cluster(t, n, 2)
					within(t, gossipMissed, members, "joined", count(2))
					from := transport.Transport(members[1].wire)
					if !member {
						stranger, err := n.Transport("stranger")
						if err != nil {
							t.Fatal(err)
						}
						defer stranger.Close()
						from = stranger
					}
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					const times = 4
					for range times {
						if tell(t, from, members[0].wire.Self(), message) {
							t.Error("it was answered")
						}
					}
					runtime.ReadMemStats(&after)
					each := (after.TotalAlloc - before.TotalAlloc) / times
					t.Logf("%d bytes cost %d KiB", len(message), each>>10)
					if each > 4<<20 {
						t.Errorf("%d bytes cost %d MiB", len(message), each>>20)
					}
					if n := members[0].Refused()[causeNames[malformed]]; n != times {
						t.Errorf("%d refusals were counted, want %d", n, times)
					}
					within(t, 0, members, "unmoved", count(2))
				})
			})
		}
	}
}

// TestAttackIndirectPings: to have somebody probed takes a member that asks, and a member
// to be probed.
func TestAttackIndirectPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		members := cluster(t, n, 3)
		within(t, gossipMissed, members, "joined", count(3))
		liar := members[2]
		before := runtime.NumGoroutine()
		var packets [][]byte
		for i := range 100 {
			var pings [][]byte
			for j := range 10 {
				name := fmt.Sprintf("nobody %d-%d", i, j)
				pings = append(pings, packed(messageIndirectPing, "SeqNo", uint32(i), "Target", []byte(advertiseIP(transport.PeerID(name))),
					"Port", uint32(advertisePort), "Node", fmt.Sprintf("nobody-%d-%d", i, j), "Nack", true, "SourceNode", string(liar.wire.Self())))
				pings = append(pings, packed(messagePing, "SeqNo", uint32(i), "Node", string(members[0].wire.Self()), "SourceAddr", []byte(advertiseIP("x")),
					"SourcePort", uint32(1), "SourceNode", fmt.Sprintf("asker-%d-%d", i, j)))
			}
			packets = append(packets, compound(pings))
		}
		whisper(t, liar.wire, members[0].wire.Self(), packets...)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		started := runtime.NumGoroutine() - before
		t.Logf("%d goroutines started", started)
		if started > 50 {
			t.Errorf("%d packets have started %d goroutines", len(packets), started)
		}
	})
}

// TestAttackManyConversations: a peer holds few conversations, with any other and in all.
func TestAttackManyConversations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		host := start(t, n, "host")
		host.announce(t, 1, 0)
		var all sync.WaitGroup
		for i := range 2 * maxAllSyncs {
			liar, err := n.Transport(fmt.Sprint("liar", i))
			if err != nil {
				t.Fatal(err)
			}
			defer liar.Close()
			for range 2 * maxSyncs {
				all.Go(func() {
					s, err := liar.Open(t.Context(), host.wire.Self(), transport.ProtocolSwim, testRun)
					if err != nil {
						t.Error(err)
						return
					}
					s.Write(append([]byte{kindSync}, header(maxStates, 0)...))
				})
			}
		}
		all.Wait()
		time.Sleep(time.Second)
		state := func() (open, held int) {
			host.carrier.in.mu.Lock()
			defer host.carrier.in.mu.Unlock()
			return len(host.carrier.in.places.all), host.carrier.in.held
		}
		if open, held := state(); open != maxBlockSyncs || held > maxHeld { // all come from one block
			t.Errorf("%d conversations are open, %d are allowed; they hold %d bytes", open, maxBlockSyncs, held)
		}
		time.Sleep(2 * syncTimeout)
		if open, held := state(); open != 0 || held != 0 {
			t.Errorf("%d conversations are open after their time, and hold %d bytes", open, held)
		}
		late := start(t, n, "late")
		late.announce(t, 1, 0)
		late.join(t, host)
		within(t, time.Second, []*member{host, late}, "a newcomer gets in", count(2))
	})
}

// TestAWholeFlockJoinsAtOnce: however many begin a conversation with one member, none is
// turned away.
func TestAWholeFlockJoinsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		host := start(t, n, "host")
		host.announce(t, 1, 0)
		var all sync.WaitGroup
		for i := range 4 * maxAllSyncs {
			joiner, err := n.Transport(fmt.Sprint("newcomer", i))
			if err != nil {
				t.Fatal(err)
			}
			defer joiner.Close()
			all.Go(func() {
				if !tell(t, joiner, host.wire.Self(), header(0, 0)) {
					t.Errorf("newcomer %d was turned away", i)
				}
			})
		}
		all.Wait()
	})
}

// loud is a network's end that says more than it should.
type loud struct {
	io.Reader
	read int
}

func (l *loud) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	l.read += n
	return n, err
}

// listener is an intake from bytes, of somebody whom this peer has asked.
func listener(t testing.TB, b *book, from io.Reader, room int) *intake {
	t.Helper()
	return &intake{from: from, gate: newGate(b, nil), by: speaker{peer: "other", heeded: true, rate: newAllowance()}, asked: true,
		hold: func(n int) bool { room -= n; return room >= 0 }}
}

// TestIntakeIsBounded: what is held of a message is bounded, though each node in it be
// believable.
func TestIntakeIsBounded(t *testing.T) {
	b := newBook(trusting{}, testRun, 1, func() {})
	node := packed(0, "Name", "other", "Addr", make([]byte, maxAddress), "Port", uint32(1), "Meta", make([]byte, 512), "Incarnation", uint32(1),
		"State", byte(stateAlive), "Vsn", []byte{1, 5, 2, 0, 0, 0})[1:]
	endless := &loud{Reader: io.MultiReader(bytes.NewReader(header(maxStates, 0)), bytes.NewReader(bytes.Repeat(node, maxStates)))}
	if _, err := listener(t, b, endless, 64<<10).read(nil); !errors.Is(err, errTooMuch) {
		t.Errorf("more than there is room for: %v", err)
	}
	if endless.read > 64<<10+2*readAtOnce {
		t.Errorf("%d bytes were read with room for 64 KiB", endless.read)
	}
	whole := io.MultiReader(bytes.NewReader(header(3, 0)), bytes.NewReader(bytes.Repeat(node, 3)))
	message, err := listener(t, b, whole, 64<<10).read(nil)
	if err != nil || !bytes.Equal(message, append(appendHeader(nil, 3, false), bytes.Repeat(node, 3)...)) {
		t.Errorf("%v, or three nodes became % x", err, message)
	}
	if _, err := listener(t, b, bytes.NewReader(append([]byte{messageEncrypt}, 0xff, 0xff, 0xff, 0xff)), 64<<10).read(newTestKeys(t, 1)); !errors.Is(err, errTooMuch) {
		t.Errorf("four gigabytes that are encrypted: %v", err)
	}
}

// TestAttackBytesOneByOne: a message that comes a byte at a time costs no more than one
// that comes at once.
func TestAttackBytesOneByOne(t *testing.T) {
	b := newBook(trusting{}, testRun, 1, func() {})
	node := packed(0, "Name", "other", "Addr", make([]byte, maxAddress), "Port", uint32(1), "Meta", make([]byte, 512), "Incarnation", uint32(1),
		"State", byte(stateAlive), "Vsn", []byte{1, 5, 2, 0, 0, 0})[1:]
	said := append(header(100, 0), bytes.Repeat(node, 100)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := listener(t, b, iotest.OneByteReader(bytes.NewReader(said)), 1<<20).read(nil); err != nil {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	cost := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d KiB cost %d KiB", len(said)>>10, cost>>10)
	if cost > 4<<20 {
		t.Errorf("%d KiB cost %d MiB", len(said)>>10, cost>>20)
	}
}

// FuzzIntake: whatever a conversation says, memberlist is given no more than was said,
// and only maps that read back.
func FuzzIntake(f *testing.F) {
	node := packed(0, "Name", "other", "Addr", make([]byte, maxAddress), "Port", uint32(1), "Meta", make([]byte, 8), "Incarnation", uint32(1),
		"State", byte(stateLeft), "Vsn", make([]byte, maxVersions))[1:]
	f.Add(header(1<<20, 0))
	f.Add(append(header(1, 0), node...))
	f.Add(append(header(2, 0), append(node, node[:len(node)/2]...)...))
	f.Add(squeezed(header(1, 0)))
	f.Add(packed(messageError, "Error", "no"))
	f.Add([]byte{messagePushPull, 0x8f})
	b := newBook(trusting{}, testRun, 1, func() {})
	f.Fuzz(func(t *testing.T, said []byte) {
		message, err := listener(t, b, bytes.NewReader(said), 1<<20).read(nil)
		if err != nil {
			return
		}
		if len(message) > len(said)+64 {
			t.Fatalf("%d bytes became %d", len(said), len(message))
		}
		again, err := listener(t, b, bytes.NewReader(message), 1<<20).read(nil)
		if err != nil || !bytes.Equal(again, message) {
			t.Fatalf("% x reads as % x, then as % x, %v", said, message, again, err)
		}
	})
}

// FuzzGate: whatever a packet holds, what memberlist is given of it passes again.
func FuzzGate(f *testing.F) {
	accusation := packed(messageDead, "Incarnation", uint32(1), "Node", "other", "From", "other")
	f.Add(accusation)
	f.Add(compound([][]byte{accusation, packed(messagePing, "SeqNo", uint32(1), "Node", "", "SourceNode", "other")}))
	f.Add(append([]byte{messageCRC, 0, 0, 0, 0}, accusation...))
	f.Add(packed(messageIndirectPing, "SeqNo", uint32(1), "Target", []byte{1}, "Port", uint32(1), "Node", "x", "Nack", false))
	f.Add([]byte{messageCompound, 9})
	b := newBook(trusting{}, testRun, 1, func() {})
	hear := func(packet []byte) []byte {
		return newGate(b, nil).packet(bytes.Clone(packet), speaker{peer: "other", heeded: true, rate: newAllowance()}, time.Now())
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		heard := hear(packet)
		if len(heard) > len(packet) {
			t.Fatalf("%d bytes became %d", len(packet), len(heard))
		}
		if heard != nil && !bytes.Equal(hear(heard), heard) {
			t.Fatalf("% x, of % x, does not pass again", heard, packet)
		}
	})
}
