package swim

import (
	"bufio"
	"encoding/binary"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// handle serves an inbound stream until it ends.
func (t *transport) handle(s seam.Stream) {
	if !t.track(s) || t.isClosed() {
		t.drop(s)
		return
	}
	s.SetReadDeadline(time.Now().Add(kindTimeout))
	var kind [1]byte
	if _, err := io.ReadFull(s, kind[:]); err != nil {
		t.drop(s)
		return
	}
	t.book.meet(s.Remote())
	switch kind[0] {
	case kindPackets:
		t.receive(s)
	case kindSync:
		t.converse(s)
	default:
		t.drop(s)
	}
}

func (t *transport) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// packetBuffer is what is read at once of a packet stream. There is one for every
// member, and most packets are smaller.
const packetBuffer = 512

// receive hands the packets of a stream to memberlist. A peer has one such
// stream: a second takes the place of the first.
func (t *transport) receive(s seam.Stream) {
	peer := s.Remote()
	t.mu.Lock()
	old := t.inbound[peer]
	t.inbound[peer] = s
	rate := t.allowanceOf(peer)
	t.mu.Unlock()
	if old != nil {
		old.Reset()
	}
	defer func() {
		t.mu.Lock()
		if t.inbound[peer] == s {
			delete(t.inbound, peer)
		}
		t.mu.Unlock()
		t.drop(s)
	}()
	r := bufio.NewReaderSize(s, packetBuffer)
	for {
		s.SetReadDeadline(time.Now().Add(idleTimeout * 3 / 2))
		packet, err := readPacket(r)
		if err != nil {
			return
		}
		now := time.Now()
		if !rate.take(now) || !t.readable(packet) {
			continue
		}
		t.busy.received(packet, now)
		select {
		case t.packets <- &memberlist.Packet{Buf: packet, From: peerAddr(peer), Timestamp: now}:
		case <-t.closing:
			return
		}
	}
}

// arrived hands a datagram's packet to memberlist, unless it is too busy.
func (t *transport) arrived(from seam.PeerID, packet []byte, now time.Time) {
	if t.isClosed() || !t.readable(packet) {
		return
	}
	t.busy.received(packet, now)
	select {
	case t.packets <- &memberlist.Packet{Buf: packet, From: peerAddr(from), Timestamp: now}:
	default:
	}
}

// readable tells whether memberlist may have a packet. What is encrypted nobody but
// memberlist can look into: there it is the key that tells who may say what.
func (t *transport) readable(packet []byte) bool { return t.busy.encrypted || plain(packet) }

const (
	// packetsPerSecond and packetBurst bound the packets that are taken from one peer:
	// many times what memberlist sends to one. What is beyond them is dropped, as a
	// network would.
	packetsPerSecond = 100
	packetBurst      = 200
)

// allowance is what a peer may still send. Its zero value is a whole burst.
type allowance struct {
	mu   sync.Mutex
	used float64 // of a burst
	last time.Time
}

// allowanceOf returns the allowance of a peer, which outlives its stream. The caller
// holds the lock.
func (t *transport) allowanceOf(peer seam.PeerID) *allowance {
	a := t.rates[peer]
	if a == nil {
		if len(t.rates) >= maxMembers {
			clear(t.rates)
		}
		a = &allowance{}
		t.rates[peer] = a
	}
	return a
}

// allows tells whether a peer may send a datagram more.
func (t *transport) allows(peer seam.PeerID, now time.Time) bool {
	t.mu.Lock()
	rate := t.allowanceOf(peer)
	t.mu.Unlock()
	return rate.take(now)
}

func (a *allowance) take(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.last.IsZero() {
		a.used = max(0, a.used-now.Sub(a.last).Seconds()*packetsPerSecond)
	}
	a.last = now
	if a.used+1 > packetBurst {
		return false
	}
	a.used++
	return true
}

// readPacket reads one packet of 1 to maxPacket bytes. It belongs to the caller.
func readPacket(r io.Reader) ([]byte, error) {
	var header [2]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint16(header[:]))
	if size == 0 || size > maxPacket {
		return nil, errMalformed
	}
	packet := make([]byte, size)
	if _, err := io.ReadFull(r, packet); err != nil {
		return nil, err
	}
	return packet, nil
}

// converse hands a stream to memberlist and waits until it is done with it.
func (t *transport) converse(s seam.Stream) {
	peer := s.Remote()
	if !t.admitSync(peer) {
		t.drop(s)
		return
	}
	defer t.endSync(peer)
	meta := t.book.remembered(peer)
	s.SetWriteDeadline(time.Now().Add(kindTimeout))
	greeting := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(meta)), uint16(len(meta)))
	if _, err := s.Write(append(greeting, meta...)); err != nil {
		t.drop(s)
		return
	}
	c := newConn(t, s, false)
	select {
	case t.conns <- c:
		<-c.done
	case <-t.closing:
		t.drop(s)
	}
}

func (t *transport) admitSync(peer seam.PeerID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.syncs[peer] >= maxSyncs {
		return false
	}
	t.syncs[peer]++
	return true
}

func (t *transport) endSync(peer seam.PeerID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.syncs[peer]--; t.syncs[peer] == 0 {
		delete(t.syncs, peer)
	}
}
