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

	"github.com/seed-97356399/murmuration/peer/transport"
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

// nodeTransport implements memberlist.NodeAwareTransport on streams of a
// transport.Transport: one long-lived stream to each peer for packets, and one for
// each push/pull.
type nodeTransport struct {
	over transport.Transport
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
	senders map[transport.PeerID]*sender
	// unanswered is the number of packets that may be sent again, by streams.
	unanswered int
	streams    map[transport.Stream]struct{}
	faults     map[transport.PeerID]error // of the peers that are being contacted
}

var _ memberlist.NodeAwareTransport = (*nodeTransport)(nil)

func newTransport(over transport.Transport, run string, b *book, busy *stragglers, wide *packets) *nodeTransport {
	ctx, cancel := context.WithCancel(context.Background())
	t := &nodeTransport{
		over:    over,
		run:     run,
		book:    b,
		busy:    busy,
		wide:    wide,
		closing: make(chan struct{}),
		ctx:     ctx,
		cancel:  cancel,
		senders: make(map[transport.PeerID]*sender),
		gate:    newGate(b, wide.log),
		streams: make(map[transport.Stream]struct{}),
		faults:  make(map[transport.PeerID]error),
	}
	t.in = newInbound(t)
	wide.owner = t
	return t
}

var errNoName = errors.New("swim: memberlist gave an address without the node's name")

func (t *nodeTransport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return advertiseIP(t.over.Self()), advertisePort, nil
}

func (t *nodeTransport) PacketCh() <-chan *memberlist.Packet { return t.in.packets }

func (t *nodeTransport) StreamCh() <-chan net.Conn { return t.in.conns }

// WriteTo implements memberlist.Transport; a peer cannot be reached without its
// name.
func (t *nodeTransport) WriteTo([]byte, string) (time.Time, error) { return time.Time{}, errNoName }

// DialTimeout implements memberlist.Transport, as WriteTo does.
func (t *nodeTransport) DialTimeout(string, time.Duration) (net.Conn, error) { return nil, errNoName }

// WriteToAddress implements memberlist.NodeAwareTransport. It sends or queues the
// packet and never blocks. What cannot be sent is dropped without an error, but for a
// transport that was shut down: that error ends a probe at once.
func (t *nodeTransport) WriteToAddress(b []byte, to memberlist.Address) (time.Time, error) {
	now := time.Now()
	peer := transport.PeerID(to.Name)
	if !validPeer(peer) || peer == t.over.Self() || len(b) > maxPacket {
		return now, nil
	}
	if t.isClosed() {
		return now, transport.ErrClosed
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
func (t *nodeTransport) enqueue(packet []byte, to transport.PeerID) {
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
func (t *nodeTransport) resend(packet []byte, to transport.PeerID, sent time.Time) {
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
func (t *nodeTransport) senderTo(peer transport.PeerID) *sender {
	s := t.senders[peer]
	if s == nil && !t.closed && len(t.senders) < maxSenders {
		s = newSender(t, peer)
		t.senders[peer] = s
		t.wg.Go(s.run)
	}
	return s
}

func (t *nodeTransport) introduce(peer transport.PeerID) {
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
func (t *nodeTransport) retire(s *sender) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(s.queue) > 0 {
		return false
	}
	delete(t.senders, s.peer)
	return true
}

func (t *nodeTransport) DialAddressTimeout(to memberlist.Address, timeout time.Duration) (net.Conn, error) {
	peer := transport.PeerID(to.Name)
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

func (t *nodeTransport) open(peer transport.PeerID, kind byte, timeout time.Duration) (transport.Stream, error) {
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	if addresses := t.book.addresses(peer); len(addresses) > 0 {
		t.over.Learn(peer, addresses)
	}
	s, err := t.over.Open(ctx, peer, transport.ProtocolSwim, t.run)
	if err != nil {
		return nil, err
	}
	if !t.track(s) {
		s.Reset()
		return nil, transport.ErrClosed
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
func (t *nodeTransport) track(s transport.Stream) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		return false
	}
	t.streams[s] = struct{}{}
	return true
}

func (t *nodeTransport) untrack(s transport.Stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.streams, s)
}

func (t *nodeTransport) drop(s transport.Stream) {
	s.Reset()
	t.untrack(s)
}

// forsake closes the packet stream to a peer that counts as gone, for a connection may take
// minutes to notice. The next packet opens another. It does not block.
func (t *nodeTransport) forsake(peer transport.PeerID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.senders[peer]; s != nil {
		signal(s.forsaken)
	}
}

// watch begins to remember why conversations with a peer fail, fault ends it:
// memberlist passes on only the text of an error.
func (t *nodeTransport) watch(peer transport.PeerID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults[peer] = nil
}

func (t *nodeTransport) fault(peer transport.PeerID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.faults[peer]
	delete(t.faults, peer)
	return err
}

func (t *nodeTransport) note(peer transport.PeerID, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, watched := t.faults[peer]; watched {
		t.faults[peer] = err
	}
}

// Shutdown implements memberlist.Transport: it sends what is queued, for a
// bounded time, then resets every stream and waits for the senders. From its
// start nothing new is sent. It is called once.
func (t *nodeTransport) Shutdown() error {
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
	streams := make([]transport.Stream, 0, len(t.streams))
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

func (t *nodeTransport) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}
