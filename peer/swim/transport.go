package swim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// The first byte of a stream tells what it carries.
const (
	// kindPackets: packets one way, each with its length in two bytes, big-endian.
	kindPackets byte = 1
	// kindSync: a conversation of memberlist's, for a push/pull. The end that
	// accepts first sends the metadata that it remembers of the other, with its
	// length in two bytes, zero if it remembers none.
	kindSync byte = 2
)

const (
	// packetQueue is the number of packets that wait for one peer; more are
	// dropped, as a network would.
	packetQueue = 32
	// maxPacket is the largest packet that is taken.
	maxPacket = 16 << 10
	// inboundPackets is the number of packets that wait for memberlist.
	inboundPackets = 1024
	// maxSenders bounds the peers that packets are sent to at a time.
	maxSenders = maxMembers
	// maxSyncs bounds the inbound conversations of one peer at a time, maxBlockSyncs those
	// of a block of addresses, and maxAllSyncs those of all; more of them wait.
	maxSyncs      = 2
	maxBlockSyncs = 16
	maxAllSyncs   = 64
	// openTimeout bounds the opening of a packet stream.
	openTimeout = 3 * time.Second
	// reopenAfter is the least time between two attempts to open one.
	reopenAfter = time.Second
	// writeTimeout bounds the writing of a packet.
	writeTimeout = 2 * time.Second
	// idleTimeout is how long a packet stream is kept without a packet. An inbound
	// one is given half as long again.
	idleTimeout = time.Minute
	// kindTimeout bounds the wait for the first byte of a stream, and the sending
	// of what is remembered.
	kindTimeout = 5 * time.Second
	// answerWait is how long the first datagrams to a peer have to be answered until what
	// was in them is sent by a stream: short enough for a probe not to fail meanwhile.
	answerWait = probeTimeout / 2
	// maxUnanswered is the number of packets that are kept for that.
	maxUnanswered = 1024
	// drainTimeout bounds the sending of what is queued at a shutdown.
	drainTimeout = 500 * time.Millisecond
)

// transport implements memberlist.NodeAwareTransport on streams of a
// seam.Transport: one long-lived stream to each peer for packets, and one for
// each push/pull.
type transport struct {
	seam seam.Transport
	run  string
	book *book
	busy *stragglers
	wide *packets
	gate *gate
	keys keys

	in      *inbound
	closing chan struct{} // closed first at a shutdown
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup // the senders

	mu      sync.Mutex
	closed  bool
	senders map[seam.PeerID]*sender
	// unanswered is the number of packets that may be sent again, by streams.
	unanswered int
	streams    map[seam.Stream]struct{}
	faults     map[seam.PeerID]error // of the peers that are being contacted
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

func newTransport(over seam.Transport, run string, b *book, busy *stragglers, wide *packets) *transport {
	ctx, cancel := context.WithCancel(context.Background())
	t := &transport{
		seam:    over,
		run:     run,
		book:    b,
		busy:    busy,
		wide:    wide,
		closing: make(chan struct{}),
		ctx:     ctx,
		cancel:  cancel,
		senders: make(map[seam.PeerID]*sender),
		gate:    newGate(b, wide.log),
		streams: make(map[seam.Stream]struct{}),
		faults:  make(map[seam.PeerID]error),
	}
	t.in = newInbound(t)
	wide.owner = t
	return t
}

var errNoName = errors.New("swim: memberlist gave an address without the node's name")

func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return advertiseIP(t.seam.Self()), advertisePort, nil
}

func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.in.packets }

func (t *transport) StreamCh() <-chan net.Conn { return t.in.conns }

// WriteTo implements memberlist.Transport; a peer cannot be reached without its
// name.
func (t *transport) WriteTo([]byte, string) (time.Time, error) { return time.Time{}, errNoName }

// DialTimeout implements memberlist.Transport, as WriteTo does.
func (t *transport) DialTimeout(string, time.Duration) (net.Conn, error) { return nil, errNoName }

// WriteToAddress implements memberlist.NodeAwareTransport. It sends or queues the
// packet and never blocks. What cannot be sent is dropped without an error, but for a
// transport that was shut down: that error ends a probe at once.
func (t *transport) WriteToAddress(b []byte, to memberlist.Address) (time.Time, error) {
	now := time.Now()
	peer := seam.PeerID(to.Name)
	if !validPeer(peer) || peer == t.seam.Self() || len(b) > maxPacket {
		return now, nil
	}
	if t.isClosed() {
		return now, seam.ErrClosed
	}
	t.busy.sent(b, peer, now)
	t.gate.sent(b, peer)
	enough, tried := t.wide.send(b, peer, t.keys, now)
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.senders[peer]
	switch {
	case enough:
		if s != nil {
			signal(s.forsaken)
		}
		return now, nil
	case tried && s == nil:
		t.resend(bytes.Clone(b), peer, now)
		return now, nil
	}
	t.enqueue(b, peer) // a stream that is there carries it while datagrams are unproven
	return now, nil
}

// enqueue has a packet sent by a stream. The caller holds the lock.
func (t *transport) enqueue(packet []byte, to seam.PeerID) {
	s := t.senderTo(to)
	if s == nil {
		return
	}
	select {
	case s.queue <- t.keys.seal(bytes.Clone(packet)):
	default:
	}
}

// resend has a packet sent by a stream that was sent by a datagram, unless an answer shows
// that datagrams arrive. The caller holds the lock.
func (t *transport) resend(packet []byte, to seam.PeerID, sent time.Time) {
	if t.unanswered == maxUnanswered {
		return
	}
	t.unanswered++
	time.AfterFunc(answerWait, func() {
		answered := t.wide.answeredSince(to, sent)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.unanswered--
		if !answered {
			t.enqueue(packet, to)
		}
	})
}

// senderTo returns the sender to a peer, nil if there are too many or the transport is
// shut down. The caller holds the lock.
func (t *transport) senderTo(peer seam.PeerID) *sender {
	s := t.senders[peer]
	if s == nil && !t.closed && len(t.senders) < maxSenders {
		s = newSender(t, peer)
		t.senders[peer] = s
		t.wg.Go(s.run)
	}
	return s
}

func (t *transport) introduce(peer seam.PeerID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.senderTo(peer)
	if s == nil {
		t.book.miss(peer)
		return
	}
	select {
	case s.queue <- nil:
	default:
		t.book.miss(peer) // it is trying to send other things, without success so far
	}
}

// retire takes an idle sender out of the table, unless a packet came meanwhile.
func (t *transport) retire(s *sender) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(s.queue) > 0 {
		return false
	}
	delete(t.senders, s.peer)
	return true
}

func (t *transport) DialAddressTimeout(to memberlist.Address, timeout time.Duration) (net.Conn, error) {
	peer := seam.PeerID(to.Name)
	if !validPeer(peer) {
		return nil, errNoName
	}
	s, err := t.open(peer, kindSync, timeout)
	if err != nil {
		t.note(peer, err)
		return nil, err
	}
	return newConn(t.in, s, true), nil
}

func (t *transport) open(peer seam.PeerID, kind byte, timeout time.Duration) (seam.Stream, error) {
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	if addresses := t.book.addresses(peer); len(addresses) > 0 {
		t.seam.Learn(peer, addresses)
	}
	s, err := t.seam.Open(ctx, peer, seam.ProtocolSwim, t.run)
	if err != nil {
		return nil, err
	}
	if !t.track(s) {
		s.Reset()
		return nil, seam.ErrClosed
	}
	s.SetWriteDeadline(time.Now().Add(timeout))
	if _, err := s.Write([]byte{kind}); err != nil {
		t.drop(s)
		return nil, fmt.Errorf("begin a stream: %w", err)
	}
	t.book.meet(peer)
	return s, nil
}

// track remembers a stream for the shutdown, and tells whether it came in time.
func (t *transport) track(s seam.Stream) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		return false
	}
	t.streams[s] = struct{}{}
	return true
}

func (t *transport) untrack(s seam.Stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.streams, s)
}

func (t *transport) drop(s seam.Stream) {
	s.Reset()
	t.untrack(s)
}

// forsake closes the packet stream to a peer that is believed gone, for a
// connection may take minutes to notice. The next packet opens another. It does
// not block.
func (t *transport) forsake(peer seam.PeerID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.senders[peer]; s != nil {
		signal(s.forsaken)
	}
}

// watch begins to remember why conversations with a peer fail, fault ends it:
// memberlist passes on only the text of an error.
func (t *transport) watch(peer seam.PeerID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults[peer] = nil
}

func (t *transport) fault(peer seam.PeerID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.faults[peer]
	delete(t.faults, peer)
	return err
}

func (t *transport) note(peer seam.PeerID, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, watched := t.faults[peer]; watched {
		t.faults[peer] = err
	}
}

// Shutdown implements memberlist.Transport: it sends what is queued, for a
// bounded time, then resets every stream and waits for the senders. From its
// start nothing new is sent. It is called once.
func (t *transport) Shutdown() error {
	t.wide.end()
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	close(t.closing)

	drained := make(chan struct{})
	go func() {
		t.wg.Wait()
		close(drained)
	}()
	timer := time.NewTimer(drainTimeout)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
	}

	t.mu.Lock()
	t.cancel()
	streams := make([]seam.Stream, 0, len(t.streams))
	for s := range t.streams {
		streams = append(streams, s)
	}
	t.mu.Unlock()
	for _, s := range streams {
		t.drop(s)
	}
	<-drained
	return nil
}

func (t *transport) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}
