package baseline

import (
	"slices"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// This file is what a member of the ring does once it has a place.

// maxEarly bounds who is remembered to have come too early.
const maxEarly = 4

// placed takes a place in the ring.
func (m *AllReduce) placed(w averaging.Word) {
	at, ok := placeOf(w)
	if !ok || w.Round <= m.floor || m.phase == computing || m.phase == updating {
		return
	}
	next, previous := m.find(at.next), m.find(at.previous)
	if next == "" || previous == "" { // in a view that is not here yet; it is told again
		return
	}
	m.join(newRing(w.Round, at, next, previous, m.ring))
}

// join begins an attempt, once whatever runs of another is over.
func (m *AllReduce) join(r ring) {
	m.abort("")
	m.ring, m.floor, m.phase, m.moved = r, r.attempt, clearing, m.now
	m.held, m.called = m.held[:0], 0
	m.start()
}

// start begins to send when nothing that was aborted can change the sum any more.
func (m *AllReduce) start() {
	if m.phase != clearing || len(m.in) > 0 {
		return
	}
	m.phase = ringing
	if m.merges {
		m.do(averaging.Action{Kind: averaging.Pool, Weight: m.config.Weight})
	} else {
		m.do(averaging.Action{Kind: averaging.Load})
	}
	for lane := range m.ring.lanes {
		if m.ring.steps() > 0 {
			m.send(m.ring.next, m.ring.transfer(0, lane))
		}
	}
	for _, id := range m.early {
		m.tell(id, word(wordAgain, m.ring.attempt, 0, 0))
	}
	m.early = m.early[:0]
	m.close()
}

// offered answers what another member, or the leader, wants to send.
func (m *AllReduce) offered(e averaging.Event) {
	t := e.Transfer
	catching := m.gives(t)
	switch {
	case m.settled:
		m.refuse(e, averaging.Closing)
	case catching && e.Peer == m.leader && (m.phase == ready || m.phase == summed || m.resting) && len(m.in) == 0:
		m.unsettled()
		m.accept(e)
	case !catching && m.phase == ringing && m.ring.take(e.Peer, t):
		m.moved = m.now
		m.accept(e)
	case !m.member(e.Peer), m.ringing() && t.Round == m.ring.attempt && e.Peer != m.ring.previous:
		m.refuse(e, averaging.Unfit)
	default:
		if t.Round > m.ring.attempt || m.phase == clearing {
			m.remember(e.Peer)
		}
		m.refuse(e, averaging.Round)
	}
}

func (m *AllReduce) remember(id topology.PeerID) {
	if !slices.Contains(m.early, id) && len(m.early) < maxEarly {
		m.early = append(m.early, id)
	}
}

// finished counts a transfer and sends on what came by it.
func (m *AllReduce) finished(e averaging.Event) {
	f, found := m.landed(e)
	switch {
	case !found:
	case f.aborted:
		m.start()
	case m.gives(f.transfer):
		m.caught(f, e.Inbound)
	case f.transfer.Round != m.ring.attempt || m.phase != ringing:
	case !e.Inbound:
		m.ring.sent++
		m.moved = m.now
		m.close()
	default:
		m.ring.taken++
		m.moved = m.now
		if step, lane, ok := m.ring.after(f.transfer); ok {
			m.send(m.ring.next, m.ring.transfer(step, lane))
		}
		m.close()
	}
}

// close ends the member's part of the attempt.
func (m *AllReduce) close() {
	if m.phase == ringing && m.ring.complete() {
		m.phase = summed
		if !m.leads() {
			m.report()
		}
	}
}

// refused is the answer to what was sent. What came too early is asked for again.
func (m *AllReduce) refused(e averaging.Event) {
	f, found := m.landed(e)
	switch {
	case !found:
	case m.gives(f.transfer):
		m.excuse(f, false)
	case f.transfer.Round != m.ring.attempt:
	case e.Reason == averaging.Round || e.Reason == averaging.Busy:
		if f.began < m.called { // it crossed the word that asks for it
			m.send(f.peer, f.transfer)
			return
		}
		m.held = append(m.held, f.transfer)
	default:
		m.broken(f.peer)
	}
}

// again sends once more what the next member has refused since it came early.
func (m *AllReduce) again(from topology.PeerID, attempt uint64) {
	if from == m.ring.next && attempt == m.ring.attempt && m.phase == ringing {
		m.called = m.now
		for _, t := range m.held {
			m.send(from, t)
		}
		m.held = m.held[:0]
	}
}

func (m *AllReduce) failed(e averaging.Event) {
	f, found := m.landed(e)
	switch {
	case !found:
	case f.aborted:
		m.start()
	case m.gives(f.transfer):
		if !e.Inbound {
			m.excuse(f, false)
		}
	case f.transfer.Round == m.ring.attempt && e.Inbound:
		m.broken("")
	case f.transfer.Round == m.ring.attempt && e.Reason == averaging.Unfit:
		m.broken(m.self)
	case f.transfer.Round == m.ring.attempt:
		m.broken(f.peer)
	}
}

// broken tells the leader that the attempt cannot be completed, and with whom, if that is
// known: who is sent to, not who sends, since that one knows better; this peer itself if
// it is its gradient that cannot be sent.
func (m *AllReduce) broken(suspect topology.PeerID) {
	if !m.ringing() {
		return
	}
	if m.leads() {
		m.accuse(m.self, suspect)
		return
	}
	blamed := uint64(0)
	if suspect != "" {
		blamed = mark(suspect)
	}
	m.tell(m.leader, word(wordBroken, m.ring.attempt, blamed, 0))
	m.regrouped(m.ring.attempt)
}

// regrouped leaves the attempt.
func (m *AllReduce) regrouped(attempt uint64) {
	if !m.ringing() || attempt != m.ring.attempt {
		return
	}
	m.abort("")
	m.phase = ready
	if !m.leads() {
		m.report()
	}
}

// caught ends a transfer of parameters.
func (m *AllReduce) caught(f flight, inbound bool) {
	if !inbound {
		m.excuse(f, true)
		return
	}
	if m.phase != ready && m.phase != summed && !m.resting || f.peer != m.leader {
		return
	}
	m.given(f.transfer)
}
