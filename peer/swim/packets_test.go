package swim

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// bare is a transport of the membership's without memberlist over it, in a wide flock.
func bare(t *testing.T, n *memnet.Network, name string) *nodeTransport {
	t.Helper()
	wire, err := n.Transport(name)
	if err != nil {
		t.Fatal(err)
	}
	b := newBook(wire, testRun, 1, func() {})
	tr := newTransport(wire, testRun, b, newStragglers(), newPackets(wire, testRun, Datagrams, zap.NewNop()))
	if err := tr.wide.begin(); err != nil {
		t.Fatal(err)
	}
	tr.wide.adapt(0)
	t.Cleanup(func() {
		tr.Shutdown()
		wire.Close()
	})
	return tr
}

func (b *book) hasMet(peer transport.PeerID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entries[peer] != nil && b.entries[peer].met
}

func newTestKeys(t *testing.T, fill byte) keys {
	t.Helper()
	k, err := newKeys([][]byte{bytes.Repeat([]byte{fill}, 32)})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// What comes as a datagram is examined as what comes by a stream is: it may hold no
// other messages unseen, unless there are keys, and comes at a bounded rate.
func TestDatagramsAreExamined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := bare(t, newNetwork(), "host")
		taken := func(datagram ...byte) bool {
			before := len(tr.in.packets)
			tr.wide.take("other", datagram)
			return len(tr.in.packets) > before
		}
		nonce := make([]byte, nonceSize)
		ping := packed(messagePing, "SeqNo", uint32(1), "Node", "", "SourceNode", "other")
		with := func(kind byte, parts ...[]byte) []byte { return append([]byte{kind}, bytes.Join(parts, nil)...) }
		for name, c := range map[string]struct {
			datagram []byte
			want     bool
		}{
			"a ping":                   {with(packetPlain, ping), true},
			"a question with a ping":   {with(packetAsks, nonce, ping), true},
			"a question alone":         {with(packetAsks, nonce), false},
			"an answer with a ping":    {with(packetAnswer, nonce, ping), false},
			"a question cut short":     {[]byte{packetAsks, 1, 2}, false},
			"of no kind":               {with(9, ping), false},
			"empty":                    {nil, false},
			"a compressed message":     {[]byte{packetPlain, messageCompress, 1}, false},
			"an encrypted one":         {with(packetPlain, newTestKeys(t, 1).seal(ping)), false},
			"one compressed among two": {with(packetPlain, compound([][]byte{ping, {messageCompress, 1}})), true},
		} {
			if got := taken(c.datagram...); got != c.want {
				t.Errorf("%s: taken %v", name, got)
			}
		}
		if last := (<-tr.in.packets).Buf; !bytes.Equal(last, ping) {
			t.Errorf("memberlist has % x of a packet, want the ping", last)
		}
		tr.keys = newTestKeys(t, 1)
		if !taken(with(packetPlain, tr.keys.seal(ping))...) {
			t.Error("with keys, what is encrypted is not taken")
		}
		for name, datagram := range map[string][]byte{
			"in the open":                with(packetPlain, ping),
			"with another key":           with(packetPlain, newTestKeys(t, 2).seal(ping)),
			"compressed within":          with(packetPlain, tr.keys.seal([]byte{messageCompress, 1})),
			"a death, of no member":      with(packetPlain, tr.keys.seal(packed(messageDead, "Incarnation", uint32(1), "Node", "x", "From", "other"))),
			"shorter than an empty seal": {packetPlain, sealVersion, 0},
		} {
			if taken(datagram...) {
				t.Errorf("with keys, %s: taken", name)
			}
		}
		for range 2 * packetBurst {
			taken(with(packetPlain, tr.keys.seal(ping))...)
		}
		if n := len(tr.in.packets); n > packetBurst {
			t.Errorf("%d packets were taken at once, at most %d are allowed", n, packetBurst)
		}
	})
}

// TestAPacketWithoutAnAnswer goes by a stream as well, before a probe fails; one that was
// answered does not.
func TestAPacketWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, dropped := range []bool{false, true} {
			n := newNetwork()
			a, b := bare(t, n, "a"), bare(t, n, "b")
			stop, err := b.over.Handle(transport.ProtocolSwim, testRun, b.in.handle)
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			if dropped {
				a.wide.over = deaf{newMeter(a.over.(*memnet.Transport))}
			}
			began := time.Now()
			a.WriteToAddress(pingOf(a, 3), addressOf(b.over.Self()))
			select {
			case <-b.in.packets:
			case <-time.After(probeTimeout):
				t.Errorf("with datagrams dropped %v, the packet has not come within %v", dropped, time.Since(began))
			}
			time.Sleep(probeTimeout)
			if got, want := a.over.Connections(), map[bool]int{false: 0, true: 1}[dropped]; got != want {
				t.Errorf("with datagrams dropped %v: %d connections, want %d", dropped, got, want)
			}
		}
	})
}

// Only who has answered the last question has been met: not who says something, nor
// who repeats an answer.
func TestToAnswerIsToBeMet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		a, b := bare(t, n, "a"), bare(t, n, "b")
		closing := make(chan struct{})
		defer close(closing)
		idB := b.over.Self()
		a.wide.take(idB, []byte{packetPlain, messagePing, 1})
		a.wide.take(idB, append([]byte{packetAnswer}, make([]byte, nonceSize)...))
		if a.book.hasMet(idB) {
			t.Error("met by a word, or by an answer to no question")
		}
		a.wide.mu.Lock()
		head, _, _ := a.wide.way(idB, time.Now())
		a.wide.mu.Unlock()
		wrong := bytes.Clone(head)
		wrong[0], wrong[1] = packetAnswer, wrong[1]^1
		a.wide.take(idB, wrong)
		if a.book.hasMet(idB) {
			t.Error("met by an answer to another question")
		}
		if !a.wide.greet(idB, closing) {
			t.Fatal("no answer")
		}
		time.Sleep(time.Second)
		if !a.book.hasMet(idB) || !b.book.hasMet(a.over.Self()) {
			t.Errorf("after a question, the asker has met the other: %v, and the other way: %v", a.book.hasMet(idB), b.book.hasMet(a.over.Self()))
		}
		if a.over.Connections() != 0 {
			t.Error("that took a connection")
		}
		n.Crash(idB)
		began := time.Now()
		a.wide.mu.Lock()
		a.wide.paths[idB].received = time.Time{}
		a.wide.mu.Unlock()
		if a.wide.greet(idB, closing) {
			t.Error("one that is gone has answered")
		}
		if took := time.Since(began); took > greetings*greetWait+time.Second {
			t.Errorf("it took %s to give up", took)
		}
	})
}
