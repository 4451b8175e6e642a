package swim

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/memberlist"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/loglimit"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Membership implements transport.Membership. Until the first Announce the local peer
// looks on: it takes part in the protocol and sees the others, but is not among
// anybody's Members. So it may Join first, learn its HighestIncarnation, and
// announce the next one. Safe for concurrent use.
type Membership struct {
	*contacts
	transport transport.Transport
	unhandle  func()

	dirty   chan struct{} // capacity 1: the book has changed
	changed chan struct{} // capacity 1: the caller's signal
	stopped chan struct{} // closed when Close is done

	// announcing holds a token while nobody announces. A channel and not a mutex:
	// the holder waits for a timer, which synctest must be able to tell. Close
	// keeps the token.
	announcing chan struct{}
	said       statement // what was last said of this peer; guarded by the token
	logOmitted func()    // logs the counts of lines that were left out
}

var _ transport.Membership = (*Membership)(nil)

// New starts a membership that has joined nobody yet, as an onlooker.
func New(cfg Config) (*Membership, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("swim: %w", err)
	}
	m := newMembership(cfg)
	if err := m.lookOn(); err != nil {
		return nil, fmt.Errorf("swim: %w", err)
	}
	sealed, err := newKeys(cfg.GossipKeys)
	if err != nil {
		return nil, fmt.Errorf("swim: %w", err)
	}
	m.carrier.keys = sealed
	if err := m.carrier.wide.begin(); err != nil && cfg.Carrier == Datagrams {
		return nil, fmt.Errorf("swim: %w", err)
	} else if err != nil {
		m.log.Info("no datagrams can be taken: the membership stays with streams", zap.Error(err))
	}
	m.carrier.wide.adapt(0)
	list, err := memberlist.Create(settings(m))
	if err != nil {
		m.carrier.wide.end()
		return nil, fmt.Errorf("swim: start memberlist: %w", err)
	}
	m.list = list
	m.wg.Go(func() { m.meetStrangers(m.renew) })
	m.wg.Go(m.notify)
	m.wg.Go(m.rejoin)
	unhandle, err := cfg.Transport.Handle(transport.ProtocolSwim, cfg.Run, m.carrier.in.handle)
	if err != nil {
		m.Close()
		return nil, fmt.Errorf("swim: take streams for run %q: %w", cfg.Run, err)
	}
	m.unhandle = unhandle
	return m, nil
}

func newMembership(cfg Config) *Membership {
	log, logOmitted := loglimit.Limit(cmp.Or(cfg.Log, zap.NewNop()))
	m := &Membership{
		contacts:   &contacts{self: cfg.Transport.Self(), every: cmp.Or(cfg.RejoinEvery, DefaultRejoinEvery), log: log, stopping: make(chan struct{})},
		transport:  cfg.Transport,
		unhandle:   func() {},
		dirty:      make(chan struct{}, 1),
		changed:    make(chan struct{}, 1),
		stopped:    make(chan struct{}),
		announcing: make(chan struct{}, 1),
		logOmitted: logOmitted,
	}
	var life [8]byte
	rand.Read(life[:]) // never fails
	m.announcing <- struct{}{}
	m.book = newBook(cfg.Transport, cfg.Run, binary.LittleEndian.Uint64(life[:]), func() { signal(m.dirty) })
	if cfg.Admission != nil {
		m.book.admission = cfg.Admission
	}
	m.carrier = newTransport(cfg.Transport, cfg.Run, m.book, newStragglers(), newPackets(cfg.Transport, cfg.Run, cfg.Carrier, m.log))
	return m
}

// lookOn prepares what memberlist spreads until the first Announce.
func (m *Membership) lookOn() error {
	s := statement{life: m.book.own.life, mark: m.book.admission.Mark()}
	s.Peer, s.Run = m.transport.Self(), m.book.own.run
	for _, address := range m.transport.Addresses() {
		if len(address) <= transport.MaxAddressSize && len(s.Addresses) < transport.MaxAddresses {
			s.Addresses = append(s.Addresses, address)
		}
	}
	return m.sign(s)
}

// sign makes a statement what the local peer says. The caller holds the token, or nobody
// else is here.
func (m *Membership) sign(s statement) error {
	s.ceiling = m.book.own.sign()
	meta, err := seal(m.transport, s)
	if err != nil {
		return err
	}
	m.said = s
	m.book.own.set(s, meta)
	return nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Signed implements transport.Courier: the metadata of the local record.
func (m *Membership) Signed() []byte {
	if _, meta, spoken := m.book.own.announced(); spoken {
		return meta
	}
	return nil
}

// Received implements transport.Courier.
func (m *Membership) Received(peer transport.PeerID, signed []byte) (news bool, err error) {
	news, err = m.book.receive(peer, signed)
	if err != nil {
		return false, fmt.Errorf("swim: the record that %s handed out %w", peer.Short(), err)
	}
	return news, nil
}

// renew signs a higher ceiling if denials have come near it. Once a second is enough: by
// then the ceiling has risen by at most incarnationRoom.
func (m *Membership) renew() {
	if !m.book.own.outgrown() {
		return
	}
	select {
	case <-m.announcing:
		defer func() { m.announcing <- struct{}{} }()
	case <-m.stopping:
		return
	}
	s := m.said
	s.Sequence++
	_ = m.say(s, time.Nanosecond) // it was sealed before
}

// Members implements transport.Members. After Close it is empty.
func (m *Membership) Members() []transport.Record { return m.book.members() }

// Changed implements transport.Members. It signals as well when a record of an earlier life has been
// heard of. The addresses of members have been given to Transport.Learn by then.
func (m *Membership) Changed() <-chan struct{} { return m.changed }

// Last implements transport.Members.
func (m *Membership) Last(peer transport.PeerID) (transport.Record, bool) { return m.book.last(peer) }

// Announce implements transport.Membership. It returns once the record is queued for
// gossip, without waiting for anybody to hear it, so it may be called several
// times a second.
func (m *Membership) Announce(record transport.Record) error {
	select {
	case <-m.announcing:
		defer func() { m.announcing <- struct{}{} }()
	case <-m.stopping:
		return fmt.Errorf("swim: announce: %w", transport.ErrClosed)
	}
	if err := m.checkOwn(record); err != nil {
		return fmt.Errorf("swim: announce: %w", err)
	}
	record.Sequence = m.said.Sequence + 1
	record.Addresses = slices.Clone(record.Addresses)
	s := statement{Record: record, life: m.said.life, announced: true, mark: m.book.admission.Mark()}
	if err := m.say(s, time.Nanosecond); err != nil {
		return fmt.Errorf("swim: announce: %w", err)
	}
	return nil
}

// say signs a statement and has it spread for so long. The caller holds the token.
func (m *Membership) say(s statement, spread time.Duration) error {
	if err := m.sign(s); err != nil {
		return err
	}
	// UpdateNode applies and queues the record, then waits for gossip to have
	// spread it, and calls it an error if that takes longer than it is given.
	_ = m.list.UpdateNode(spread)
	return nil
}

func (m *Membership) checkOwn(record transport.Record) error {
	if record.Peer != m.said.Peer || record.Run != m.said.Run {
		return fmt.Errorf("the record is of peer %q in run %q, not of %q in run %q",
			record.Peer, record.Run, m.said.Peer, m.said.Run)
	}
	if former, ok := m.book.highest(record.Peer); ok && record.Incarnation <= former {
		return &transport.OldIncarnationError{Announced: record.Incarnation, Highest: former}
	}
	if record.Incarnation < m.said.Incarnation {
		return fmt.Errorf("incarnation %d is lower than %d, announced before", record.Incarnation, m.said.Incarnation)
	}
	return nil
}

// Refused implements transport.Membership: the messages that were not passed on to memberlist.
func (m *Membership) Refused() map[string]uint64 { return m.carrier.gate.refused() }

// notify passes changes of the book on: addresses to the transport, then the
// signal to the caller. It runs outside memberlist's lock, so Learn may block.
func (m *Membership) notify() {
	for {
		select {
		case <-m.dirty:
		case <-m.stopping:
			return
		}
		for peer, addresses := range m.book.takeLearned() {
			m.transport.Learn(peer, addresses)
		}
		m.carrier.wide.adapt(m.book.living())
		signal(m.changed)
	}
}

// Close implements transport.Membership: it tells the others, which takes at most two
// seconds, then waits for every goroutine. A probe of memberlist's that is under
// way to a member that does not answer can hold it for up to three seconds more.
func (m *Membership) Close() error {
	m.mu.Lock()
	begun := m.closing
	m.closing = true
	m.mu.Unlock()
	if begun {
		<-m.stopped
		return nil
	}
	close(m.stopping)
	<-m.announcing
	// The news of a departure would overtake the last record, which may say why, and
	// which now says that it is one.
	farewell := m.said
	farewell.left = true
	farewell.Sequence++
	_ = m.say(farewell, farewellTimeout) // it was sealed before
	// Leave returns an error if the news was not sent as often as usual; it has been sent
	// to a few by then, which pass it on.
	_ = m.list.Leave(leaveTimeout)
	m.carrier.busy.settle(settleTimeout)
	if err := m.list.Shutdown(); err != nil {
		m.log.Warn("memberlist did not shut down cleanly", zap.Error(err))
	}
	m.unhandle()
	m.wg.Wait()
	m.awaitStragglers()
	m.book.close()
	signal(m.changed)
	m.logOmitted()
	close(m.stopped)
	return nil
}

func (m *Membership) awaitStragglers() {
	timeout := time.Duration(m.list.GetHealthScore() + 1)
	left := time.Until(m.carrier.busy.gone(timeout * probeInterval))
	if left <= 0 {
		return
	}
	const margin = 10 * time.Millisecond
	time.Sleep(left + margin)
}
