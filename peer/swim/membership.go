package swim

import (
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// Members implements seam.Roster. After Close it is empty.
func (m *Membership) Members() []seam.Record { return m.book.members() }

// Changed implements seam.Roster. It signals as well when HighestIncarnation has
// news. The addresses of members have been given to Transport.Learn by then.
func (m *Membership) Changed() <-chan struct{} { return m.changed }

// HighestIncarnation returns the highest incarnation that a peer was heard to
// announce, even if it has departed since, and false if none. Of the local peer
// it is the highest of its earlier lives, and never this one's: whoever answers a
// Join tells what it remembers of it.
func (m *Membership) HighestIncarnation(peer seam.PeerID) (uint64, bool) {
	return m.book.highest(peer)
}

// Last implements seam.Archive.
func (m *Membership) Last(peer seam.PeerID) (seam.Record, bool) { return m.book.last(peer) }

// Announce implements seam.Membership. It returns once the record is queued for
// gossip, without waiting for anybody to hear it, so it may be called several
// times a second.
func (m *Membership) Announce(record seam.Record) error {
	select {
	case <-m.announcing:
		defer func() { m.announcing <- struct{}{} }()
	case <-m.stopping:
		return fmt.Errorf("swim: announce: %w", seam.ErrClosed)
	}
	if err := m.checkOwn(record); err != nil {
		return fmt.Errorf("swim: announce: %w", err)
	}
	record.Sequence = m.said.Sequence + 1
	record.Addresses = slices.Clone(record.Addresses)
	s := statement{Record: record, life: m.life, announced: true, mark: m.book.admission.Mark()}
	if err := m.say(s, time.Nanosecond); err != nil {
		return fmt.Errorf("swim: announce: %w", err)
	}
	return nil
}

// say signs a statement and has it spread for so long. The caller holds the token.
func (m *Membership) say(s statement, spread time.Duration) error {
	s.ceiling = m.book.sign()
	meta, err := seal(m.transport, s)
	if err != nil {
		return err
	}
	m.said = s
	m.book.setOwn(s, meta)
	// UpdateNode applies and queues the record, then waits for gossip to have
	// spread it, and calls it an error if that takes longer than it is given.
	_ = m.list.UpdateNode(spread)
	return nil
}

// checkOwn tells why a record cannot be the local peer's next.
func (m *Membership) checkOwn(record seam.Record) error {
	if record.Peer != m.transport.Self() || record.Run != m.run {
		return fmt.Errorf("the record is of peer %q in run %q, not of %q in run %q",
			record.Peer, record.Run, m.transport.Self(), m.run)
	}
	if former, ok := m.book.highest(record.Peer); ok && record.Incarnation <= former {
		return &seam.OldIncarnationError{Announced: record.Incarnation, Highest: former}
	}
	if record.Incarnation < m.said.Incarnation {
		return fmt.Errorf("incarnation %d is lower than %d, announced before", record.Incarnation, m.said.Incarnation)
	}
	return nil
}

// Refused implements seam.Refuser: the messages that were not passed on to memberlist.
func (m *Membership) Refused() map[string]uint64 { return m.carrier.gate.refused() }

// notify passes changes of the book on: addresses to the transport, then the
// signal to the caller. It runs outside memberlist's lock, so Learn may block.
func (m *Membership) notify() {
	defer m.wg.Done()
	for {
		select {
		case <-m.dirty:
		case <-m.stopping:
			return
		}
		for peer, addresses := range m.book.takeLearned() {
			m.transport.Learn(peer, addresses)
		}
		if err := m.carrier.wide.adapt(m.book.living()); err != nil {
			m.log.Warn("the membership goes on by streams, with a connection to every member", zap.Error(err))
		}
		signal(m.changed)
	}
}

// Close implements seam.Membership: it tells the others, which takes at most two
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
	// Leave calls it an error if the news was not told as often as others are; it
	// was told to a few by then, who pass it on.
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
	m.untold()
	close(m.stopped)
	return nil
}

// awaitStragglers waits for the goroutines that memberlist's Shutdown leaves.
func (m *Membership) awaitStragglers() {
	patience := time.Duration(m.list.GetHealthScore() + 1)
	left := time.Until(m.carrier.busy.gone(patience * probeInterval))
	if left <= 0 {
		return
	}
	const margin = 10 * time.Millisecond
	time.Sleep(left + margin)
}
