package swim

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// Carrier says how the packets of the membership travel. Whole states, which are too large
// for packets, travel by streams in any case.
type Carrier uint8

const (
	// Auto uses streams up to WideAbove members and datagrams beyond, and switches as the
	// flock grows and shrinks.
	Auto Carrier = iota
	// Streams is one stream to every member, and so a connection to every one.
	Streams
	// Datagrams is a datagram for each packet, without a connection.
	Datagrams
)

const (
	// WideAbove is the number of members beyond which a flock is wide.
	WideAbove = 64
	// narrowBelow is that below which it is no longer: the difference keeps a flock of
	// about WideAbove from moving to and fro.
	narrowBelow = 48

	// A member that has not answered for askAgain is asked to.
	// After silentAfter datagrams over at least silentFor without an answer, streams are
	// taken to that member for blockedFor: it listens to no datagrams yet, or a
	// firewall drops them.
	askAgain    = 20 * time.Second
	silentAfter = 3
	silentFor   = time.Second
	blockedFor  = 30 * time.Second
	// maxStrangePaths is the number of paths from which on none is added for an unknown
	// peer.
	maxStrangePaths = maxMembers / 2
	// forgetAfter is the time without sent or received packets after which a path is forgotten.
	forgetAfter = 5 * time.Minute
)

// The first byte of a datagram.
const (
	packetPlain byte = 1 // a packet of memberlist's
	// packetAsks asks for an answer: a nonce, and perhaps a packet of memberlist's.
	packetAsks byte = 2
	// packetAnswer is that answer, the nonce. Only it shows that the other end is there
	// and that datagrams arrive: one that comes from there may be an old one that
	// somebody sends again, and a firewall may let them through in one direction.
	packetAnswer byte = 3

	nonceSize = 8
)

// maxPayload is the largest packet of memberlist's that fits a datagram.
const maxPayload = transport.MaxPacket - 1 - nonceSize

const (
	// A stranger is asked greetings times, greetWait apart, and then dialled.
	greetings = 3
	greetWait = 500 * time.Millisecond
)

// packets sends and takes the membership's packets as datagrams.
type packets struct {
	over    transport.Packets // nil once they cannot be had
	run     string
	carrier Carrier
	log     *zap.Logger
	owner   *nodeTransport

	mu    sync.Mutex
	wide  bool
	stop  func()
	paths map[transport.PeerID]*path
}

// path is what is known about the path to a member.
type path struct {
	received time.Time // when an answer last came from there
	asked    time.Time // when the first was sent that has had no answer
	silent   int       // number of datagrams without an answer since then
	nonce    [nonceSize]byte
	blocked  time.Time // until when streams are used
	sent     time.Time
	// answered is closed by the next answer; nil if nobody waits for it.
	answered chan struct{}
}

func newPackets(over transport.Packets, run string, carrier Carrier, log *zap.Logger) *packets {
	if carrier == Streams {
		over = nil
	}
	return &packets{over: over, run: run, carrier: carrier, log: log, stop: func() {}, paths: make(map[transport.PeerID]*path)}
}

// begin receives datagrams, whatever the size of the flock: members that find it wide first
// can reach those that do not yet. It is called once, before anything else; if it fails,
// streams serve too.
func (p *packets) begin() error {
	if p.over == nil {
		return nil
	}
	stop, err := p.over.HandlePackets(p.run, p.take)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.over = nil
		return fmt.Errorf("taking datagrams of run %q: %w", p.run, err)
	}
	p.stop = stop
	return nil
}

// adapt switches to datagrams, or back, for a flock of so many members.
func (p *packets) adapt(members int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.wide
	p.wide = p.over != nil && (p.carrier == Datagrams || members > WideAbove || was && members >= narrowBelow)
	if was != p.wide {
		p.log.Info("the membership changes what it travels by", zap.Bool("datagrams", p.wide), zap.Int("members", members))
	}
}

// end takes no datagrams any more and waits for what is being taken.
func (p *packets) end() {
	p.mu.Lock()
	stop := p.stop
	p.stop, p.wide, p.over = func() {}, false, nil
	p.mu.Unlock()
	stop()
}

// send sends a packet as datagrams, if that may be the way to a member. It reports
// whether that is known to be enough, and whether it was tried at all.
func (p *packets) send(packet []byte, to transport.PeerID, sealed keys, now time.Time) (enough, tried bool) {
	p.mu.Lock()
	over, wide := p.over, p.wide
	if over == nil || !wide {
		p.mu.Unlock()
		return false, false
	}
	head, proven, open := p.way(to, now)
	p.mu.Unlock()
	if !open {
		return false, false
	}
	parts, ok := partsOf(packet, maxPayload-sealed.overhead())
	if !ok {
		return false, false
	}
	for _, part := range parts {
		if over.SendPacket(to, p.run, append(slices.Clip(head), sealed.seal(part)...)) != nil {
			return false, false
		}
	}
	return proven, true
}

// way tells how a datagram to a member begins, whether the member has lately answered
// one, and whether it may be sent any. The lock is held.
func (p *packets) way(to transport.PeerID, now time.Time) (head []byte, proven, open bool) {
	w := p.path(to, now)
	if w == nil || now.Before(w.blocked) {
		return nil, false, false
	}
	w.sent = now
	if w.fresh(now) {
		return []byte{packetPlain}, true, true
	}
	if w.silent == 0 {
		w.asked = now
		rand.Read(w.nonce[:]) // never fails
	}
	w.silent++
	if w.silent > silentAfter && now.Sub(w.asked) >= silentFor {
		w.blocked, w.silent, w.received = now.Add(blockedFor), 0, time.Time{}
		return nil, false, false
	}
	return append([]byte{packetAsks}, w.nonce[:]...), !w.received.IsZero(), true
}

func (w *path) fresh(now time.Time) bool {
	return !w.received.IsZero() && now.Sub(w.received) < askAgain
}

// path returns what is known of the way to a member, nil if there are too many.
func (p *packets) path(to transport.PeerID, now time.Time) *path {
	w := p.paths[to]
	if w == nil {
		if len(p.paths) >= maxMembers {
			maps.DeleteFunc(p.paths, func(_ transport.PeerID, old *path) bool {
				return now.Sub(old.received) > forgetAfter && now.Sub(old.sent) > forgetAfter
			})
		}
		if len(p.paths) >= maxMembers {
			return nil
		}
		w = &path{}
		p.paths[to] = w
	}
	return w
}

// greet asks a peer for an answer, some times, if datagrams may be the way to it, and
// tells whether one came.
func (p *packets) greet(to transport.PeerID, closing <-chan struct{}) bool {
	for range greetings {
		answered, asked := p.ask(to, time.Now())
		if !asked {
			return false
		}
		timer := time.NewTimer(greetWait)
		select {
		case <-answered:
			timer.Stop()
			return true
		case <-closing:
			timer.Stop()
			return false
		case <-timer.C:
		}
	}
	return false
}

// ask asks a peer for an answer, if datagrams are the way of a flock of this size, and
// may be that to the peer. The channel is closed when the answer is there.
func (p *packets) ask(to transport.PeerID, now time.Time) (answered <-chan struct{}, asked bool) {
	p.mu.Lock()
	over, wide := p.over, p.wide
	if over == nil || !wide {
		p.mu.Unlock()
		return nil, false
	}
	head, _, open := p.way(to, now)
	if !open {
		p.mu.Unlock()
		return nil, false
	}
	w := p.paths[to]
	if head[0] == packetPlain { // it has answered another question meanwhile, and been met
		p.mu.Unlock()
		p.owner.book.meet(to)
		answered := make(chan struct{})
		close(answered)
		return answered, true
	}
	if w.answered == nil {
		w.answered = make(chan struct{})
	}
	answered = w.answered
	p.mu.Unlock()
	return answered, over.SendPacket(to, p.run, head) == nil
}

func (p *packets) answeredSince(peer transport.PeerID, since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.paths[peer]
	return w != nil && !w.received.Before(since)
}

func (p *packets) take(from transport.PeerID, datagram []byte) {
	now := time.Now()
	kind, nonce, packet, ok := splitPacket(datagram)
	if !ok || !p.owner.in.allows(from, now) {
		return
	}
	switch kind {
	case packetAnswer:
		p.receive(from, nonce, now)
		return
	case packetAsks:
		p.answer(from, nonce, now)
	}
	if len(packet) > 0 {
		p.owner.in.arrived(from, bytes.Clone(packet), now)
	}
}

// receive notes an answer, if it is one to the last question.
func (p *packets) receive(from transport.PeerID, nonce [nonceSize]byte, now time.Time) {
	p.mu.Lock()
	w := p.paths[from]
	if w == nil || w.silent == 0 || w.nonce != nonce {
		p.mu.Unlock()
		return
	}
	w.received, w.silent, w.blocked = now, 0, time.Time{}
	if w.answered != nil {
		close(w.answered)
		w.answered = nil
	}
	p.mu.Unlock()
	p.owner.book.meet(from)
}

// answer answers a question, and asks back if this end knows nothing of the way: so
// both know of each other by one round trip and a half.
func (p *packets) answer(to transport.PeerID, nonce [nonceSize]byte, now time.Time) {
	known := p.owner.book.knows(to)
	p.mu.Lock()
	over := p.over
	var question []byte
	w := p.paths[to]
	if w == nil && (known || len(p.paths) < maxStrangePaths) || w != nil && !w.fresh(now) && w.silent == 0 {
		question, _, _ = p.way(to, now)
	}
	p.mu.Unlock()
	if over == nil {
		return
	}
	// A datagram that is not sent is one that is lost.
	_ = over.SendPacket(to, p.run, append([]byte{packetAnswer}, nonce[:]...))
	if len(question) > 0 {
		_ = over.SendPacket(to, p.run, question)
	}
}
