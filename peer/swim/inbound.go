package swim

import (
	"bufio"
	"encoding/binary"
	"io"
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
	t.mu.Unlock()
	rate := t.allowanceOf(peer)
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
		if !rate.packets.AllowN(now, 1) {
			t.gate.refuse(peer, tooMany)
			continue
		}
		if packet = t.examine(packet, t.speaker(peer), now); packet == nil {
			continue
		}
		select {
		case t.packets <- &memberlist.Packet{Buf: packet, From: peerAddr(peer), Timestamp: now}:
		case <-t.closing:
			return
		}
	}
}

// arrived hands a datagram's packet to memberlist, unless it is too busy.
func (t *transport) arrived(from seam.PeerID, packet []byte, now time.Time) {
	if t.isClosed() {
		return
	}
	if packet = t.examine(packet, t.speaker(from), now); packet == nil {
		return
	}
	select {
	case t.packets <- &memberlist.Packet{Buf: packet, From: peerAddr(from), Timestamp: now}:
	default:
	}
}

// examine returns what memberlist may have of a packet, nil if that is nothing.
func (t *transport) examine(packet []byte, by speaker, now time.Time) []byte {
	plain, err := t.keys.open(packet)
	if err != nil {
		t.gate.refuse(by.peer, malformed)
		return nil
	}
	packet = t.gate.packet(plain, by, now)
	t.busy.received(packet, now)
	return packet
}

// speaker tells who a peer is to memberlist.
func (t *transport) speaker(peer seam.PeerID) speaker {
	return speaker{peer: peer, heeded: t.book.believes(peer), rate: t.allowanceOf(peer)}
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

// converse reads what the other end of a stream says, hands it to memberlist, and waits
// until it is done with it.
func (t *transport) converse(s seam.Stream) {
	peer := s.Remote()
	if !t.admitSync(peer, time.Now()) {
		t.gate.refuse(peer, tooMany)
		t.drop(s)
		return
	}
	defer t.endSync(peer)
	leave := t.places.take(peer, t.closing)
	if leave == nil {
		t.gate.refuse(peer, tooMany)
		t.drop(s)
		return
	}
	defer leave()
	meta := t.book.remembered(peer)
	s.SetWriteDeadline(time.Now().Add(kindTimeout))
	greeting := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(meta)), uint16(len(meta)))
	if _, err := s.Write(append(greeting, meta...)); err != nil {
		t.drop(s)
		return
	}
	s.SetReadDeadline(time.Now().Add(syncTimeout))
	c := newConn(t, s, false)
	if err := c.listen(); err != nil {
		t.gate.refuse(peer, malformed)
		c.abandon()
		return
	}
	select {
	case t.conns <- c:
		<-c.done
	case <-t.closing:
		c.abandon()
	}
}

func (t *transport) admitSync(peer seam.PeerID, now time.Time) bool {
	rate := t.allowanceOf(peer)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.syncs[peer] >= maxSyncs || !rate.syncs.AllowN(now, 1) {
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

// hold makes room for so many bytes of a conversation, if there is any; less than
// nothing gives room back.
func (t *transport) hold(bytes int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held+bytes > maxHeld {
		return false
	}
	t.held += bytes
	return true
}
