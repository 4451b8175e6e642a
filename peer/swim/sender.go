package swim

import (
	"encoding/binary"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// keptFrame is the most memory that a sender keeps for its next packet: there is a
// sender for every member, and most packets are small.
const keptFrame = 512

// sender writes the packets for one peer to a stream that it opens at need. It
// ends when nothing was sent for a while.
type sender struct {
	transport *nodeTransport
	peer      transport.PeerID
	queue     chan []byte   // nil: see that there is a stream
	forsaken  chan struct{} // capacity 1: the stream is not needed, or the peer counts as gone

	stream transport.Stream // nil if none is open
	opened time.Time        // when one was last tried
	frame  []byte
}

func newSender(t *nodeTransport, peer transport.PeerID) *sender {
	return &sender{
		transport: t,
		peer:      peer,
		queue:     make(chan []byte, packetQueue),
		forsaken:  make(chan struct{}, 1),
	}
}

func (s *sender) run() {
	idle := time.NewTimer(idleTimeout)
	defer idle.Stop()
	for {
		select {
		case packet := <-s.queue:
			if packet == nil {
				s.greet()
			} else {
				s.send(packet)
			}
			if s.stream == nil { // greeted by datagrams, or out of reach
				idle.Reset(reopenAfter)
			} else {
				idle.Reset(idleTimeout)
			}
		case <-s.forsaken:
			// Closed, not reset: it may be a departure that waits for an ack.
			s.close()
			s.opened = time.Time{}
		case <-idle.C:
			if s.transport.retire(s) {
				s.close()
				return
			}
			idle.Reset(idleTimeout)
		case <-s.transport.closing:
			s.flush()
			return
		}
	}
}

func (s *sender) flush() {
	for {
		select {
		case packet := <-s.queue:
			if packet != nil {
				s.send(packet)
			}
		default:
			s.close()
			return
		}
	}
}

// send writes one packet. A stream that broke is opened once more for it, so that a
// restarted peer gets it; otherwise the packet is lost.
func (s *sender) send(packet []byte) {
	for range 2 {
		if s.stream == nil && !s.open() {
			return
		}
		s.frame = binary.BigEndian.AppendUint16(s.frame[:0], uint16(len(packet)))
		s.frame = append(s.frame, packet...)
		s.stream.SetWriteDeadline(time.Now().Add(writeTimeout))
		_, err := s.stream.Write(s.frame)
		if cap(s.frame) > keptFrame {
			s.frame = nil
		}
		if err == nil {
			return
		}
		s.transport.drop(s.stream)
		s.stream = nil
	}
}

func (s *sender) open() bool {
	if !s.opened.IsZero() && time.Since(s.opened) < reopenAfter {
		return false
	}
	s.opened = time.Now()
	stream, err := s.transport.open(s.peer, kindPackets, openTimeout)
	if err != nil {
		return false
	}
	s.stream = stream
	return true
}

// close ends the stream so that what was written arrives.
func (s *sender) close() {
	if s.stream != nil {
		s.stream.Close()
		s.transport.untrack(s.stream)
		s.stream = nil
	}
}

// greet asks by datagrams, if the flock is wide, or else opens the stream if need be,
// and notes whether the peer is there.
func (s *sender) greet() {
	if s.stream == nil && s.transport.wide.greet(s.peer, s.transport.closing) {
		return
	}
	if s.stream == nil && !s.open() {
		s.transport.book.miss(s.peer)
		return
	}
	s.transport.book.meet(s.peer)
}
