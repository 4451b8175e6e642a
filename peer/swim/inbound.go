package swim

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/hashicorp/memberlist"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// inbound receives for memberlist what others send, by streams and by datagrams.
type inbound struct {
	*nodeTransport
	packets chan *memberlist.Packet
	conns   chan net.Conn
	places  *places // of conversations
	rates   *lru.Cache[transport.PeerID, *allowance]

	mu    sync.Mutex
	first map[transport.PeerID]transport.Stream // packet streams
	syncs map[transport.PeerID]int              // conversations
	held  int                                   // bytes of all conversations
}

func newInbound(t *nodeTransport) *inbound {
	rates, _ := lru.New[transport.PeerID, *allowance](maxMembers) // fails for sizes below one only
	return &inbound{
		nodeTransport: t,
		packets:       make(chan *memberlist.Packet, inboundPackets),
		conns:         make(chan net.Conn),
		places:        newPlaces(t.over),
		rates:         rates,
		first:         make(map[transport.PeerID]transport.Stream),
		syncs:         make(map[transport.PeerID]int),
	}
}

func (in *inbound) handle(s transport.Stream) {
	if !in.track(s) || in.isClosed() {
		in.drop(s)
		return
	}
	s.SetReadDeadline(time.Now().Add(kindTimeout))
	var kind [1]byte
	if _, err := io.ReadFull(s, kind[:]); err != nil {
		in.drop(s)
		return
	}
	in.book.meet(s.Remote())
	switch kind[0] {
	case kindPackets:
		in.receive(s)
	case kindSync:
		in.converse(s)
	default:
		in.drop(s)
	}
}

// packetBuffer is what is read at once of a packet stream. There is one for every
// member, and most packets are smaller.
const packetBuffer = 512

// receive hands the packets of a stream to memberlist. A peer has one such
// stream: a second takes the place of the first.
func (in *inbound) receive(s transport.Stream) {
	peer := s.Remote()
	in.mu.Lock()
	old := in.first[peer]
	in.first[peer] = s
	in.mu.Unlock()
	if old != nil {
		old.Reset()
	}
	defer func() {
		in.mu.Lock()
		if in.first[peer] == s {
			delete(in.first, peer)
		}
		in.mu.Unlock()
		in.drop(s)
	}()
	r := bufio.NewReaderSize(s, packetBuffer)
	for {
		s.SetReadDeadline(time.Now().Add(idleTimeout * 3 / 2))
		packet, err := readSized(r, maxPacket)
		if err != nil || len(packet) == 0 {
			return
		}
		now := time.Now()
		if !in.allows(peer, now) {
			continue
		}
		accepted := in.examine(packet, in.speaker(peer), now)
		if accepted == nil {
			continue
		}
		select {
		case in.packets <- accepted:
		case <-in.closing:
			return
		}
	}
}

func (in *inbound) rate(peer transport.PeerID) *allowance {
	if known, ok := in.rates.Get(peer); ok {
		return known
	}
	fresh := newAllowance()
	if known, ok, _ := in.rates.PeekOrAdd(peer, fresh); ok {
		return known
	}
	return fresh
}

func (in *inbound) allows(peer transport.PeerID, now time.Time) bool {
	if in.rate(peer).packets.AllowN(now, 1) {
		return true
	}
	in.gate.refuse(peer, tooMany)
	return false
}

// arrived hands a datagram's packet to memberlist, unless it is too busy.
func (in *inbound) arrived(from transport.PeerID, packet []byte, now time.Time) {
	if in.isClosed() {
		return
	}
	accepted := in.examine(packet, in.speaker(from), now)
	if accepted == nil {
		return
	}
	select {
	case in.packets <- accepted:
	default:
	}
}

// examine returns the part of a packet that memberlist may receive, nil if there is none.
func (in *inbound) examine(packet []byte, by speaker, now time.Time) *memberlist.Packet {
	plain, err := in.keys.open(packet)
	if err != nil {
		in.gate.refuse(by.peer, malformed)
		return nil
	}
	packet = in.gate.packet(plain, by, now)
	in.busy.received(packet, now)
	if packet == nil {
		return nil
	}
	return &memberlist.Packet{Buf: packet, From: peerAddr(by.peer), Timestamp: now}
}

func (in *inbound) speaker(peer transport.PeerID) speaker {
	return speaker{peer: peer, heeded: in.book.accepts(peer), rate: in.rate(peer)}
}

// readSized reads a length and so many bytes, at most most. They belong to the caller.
func readSized(r io.Reader, most int) ([]byte, error) {
	var header [2]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint16(header[:]))
	if size > most {
		return nil, fmt.Errorf("%d bytes, at most %d are taken: %w", size, most, errMalformed)
	}
	b := make([]byte, size)
	_, err := io.ReadFull(r, b)
	return b, err
}

// converse reads the message of the other end of a stream, hands it to memberlist, and
// waits until memberlist has handled it.
func (in *inbound) converse(s transport.Stream) {
	peer := s.Remote()
	if !in.admitSync(peer, time.Now()) {
		in.gate.refuse(peer, tooMany)
		in.drop(s)
		return
	}
	defer in.endSync(peer)
	leave := in.places.take(peer, in.closing)
	if leave == nil {
		in.gate.refuse(peer, tooMany)
		in.drop(s)
		return
	}
	defer leave()
	meta := in.book.of(peer).meta
	s.SetWriteDeadline(time.Now().Add(kindTimeout))
	greeting := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(meta)), uint16(len(meta)))
	if _, err := s.Write(append(greeting, meta...)); err != nil {
		in.drop(s)
		return
	}
	s.SetReadDeadline(time.Now().Add(syncTimeout))
	c := newConn(in, s, false)
	if err := c.listen(); err != nil {
		in.gate.refuse(peer, malformed)
		c.abandon()
		return
	}
	select {
	case in.conns <- c:
		<-c.done
	case <-in.closing:
		c.abandon()
	}
}

func (in *inbound) admitSync(peer transport.PeerID, now time.Time) bool {
	rate := in.rate(peer)
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.syncs[peer] >= maxSyncs || !rate.syncs.AllowN(now, 1) {
		return false
	}
	in.syncs[peer]++
	return true
}

func (in *inbound) endSync(peer transport.PeerID) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.syncs[peer]--; in.syncs[peer] == 0 {
		delete(in.syncs, peer)
	}
}

// hold reserves memory for so many bytes of a conversation, if there is any; a negative
// number releases it.
func (in *inbound) hold(bytes int) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.held+bytes > maxHeld {
		return false
	}
	in.held += bytes
	return true
}
