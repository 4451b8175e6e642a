package swim

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// A signature costs whoever makes up members a key each, which is next to nothing. To
// answer costs something that is there: so a member is one only once there has been an
// authenticated stream between it and the local peer, from either end, or it has answered
// a datagram with the nonce in it. Until then it is a stranger, of whom only so many are
// remembered, and is greeted: by datagrams in a wide flock, else and if these stay without
// an answer by a dial. docs/design/016 has the reasons.
const (
	// minStrangers is the number of strangers that are members all the same, if there
	// are fewer that have been met: two peers that nobody can dial never meet.
	minStrangers = 4
	// minCrowd is the number of strangers that are remembered, if that is more than
	// crowdShare for each member that has been met.
	minCrowd   = 64
	crowdShare = 2
	// meetAtOnce bounds the strangers that are dialled at a time.
	meetAtOnce = 8
	// strangerPatience is how long one of two strangers waits to be greeted by the
	// other, so that they make one connection and not two.
	strangerPatience = 2 * time.Second
	// missedWait is the time after a failed dial until the next, times their number,
	// and maxMissed how many a stranger is given.
	missedWait = 5 * time.Second
	maxMissed  = 3
	// strangerFor is how long a stranger is remembered that memberlist believes dead, so
	// that it does not come back as a new one.
	strangerFor = 10 * time.Minute
	// meetEvery is the time between two looks for strangers to dial.
	meetEvery = time.Second
)

// acquaintance is how far a peer in the book has been met.
type acquaintance struct {
	met     bool
	since   time.Time // when it was first heard of
	dialled bool      // a dial is under way
	missed  int       // dials that failed
	next    time.Time // when to dial again
}

// stranger tells whether an entry is of a member that has not been met.
func (e *entry) stranger() bool { return e.heard() && !e.met }

// meet notes that there was an authenticated stream with a peer, or an answer of it.
func (b *book) meet(peer seam.PeerID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[peer]
	if e == nil {
		e = b.add(peer, true)
	}
	if e == nil || e.met {
		return
	}
	if e.met = true; e.heard() {
		b.changed()
	}
	if e.dialled {
		e.dialled = false
		signal(b.strangers) // another can be dialled
	}
}

// knows tells whether a peer was heard of or met.
func (b *book) knows(peer seam.PeerID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entries[peer] != nil
}

// miss notes that a stranger could not be dialled.
func (b *book) miss(peer seam.PeerID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[peer]
	if e == nil || e.met {
		return
	}
	e.dialled = false
	e.missed++
	e.next = time.Now().Add(time.Duration(e.missed) * missedWait)
	b.changed()
	signal(b.strangers) // another can be dialled
}

// crowded tells whether no stranger more is to be remembered. The caller holds the
// lock.
func (b *book) crowded() bool {
	strangers, met := 0, 0
	for _, e := range b.entries {
		if e.stranger() {
			strangers++
		} else if e.alive {
			met++
		}
	}
	return strangers >= max(minCrowd, crowdShare*met)
}

// toMeet picks the strangers to dial now: those heard of first, as many as may be
// dialled at a time.
func (b *book) toMeet(now time.Time) []seam.PeerID {
	b.mu.Lock()
	defer b.mu.Unlock()
	under := 0
	var due []seam.PeerID
	for peer, e := range b.entries {
		switch {
		case e.stranger() && !e.alive && !e.seed && now.Sub(e.departed) > strangerFor:
			delete(b.entries, peer)
			delete(b.learned, peer)
		case e.dialled:
			under++
		case e.stranger() && e.alive && e.missed < maxMissed && !now.Before(e.next):
			due = append(due, peer)
		}
	}
	b.byAge(due)
	due = due[:min(len(due), max(0, meetAtOnce-under))]
	for _, peer := range due {
		b.entries[peer].dialled = true
	}
	return due
}

// byAge sorts peers by when they were first heard of.
func (b *book) byAge(peers []seam.PeerID) {
	slices.SortFunc(peers, func(x, y seam.PeerID) int {
		if c := b.entries[x].since.Compare(b.entries[y].since); c != 0 {
			return c
		}
		return cmp.Compare(x, y)
	})
}

// waitsFor tells whether it is for a stranger to dial: for one that has no model yet if
// the local peer has, since it wants to copy one soon, and else for that with the lower
// id. The caller holds the lock.
func (b *book) waitsFor(peer seam.PeerID, says statement) bool {
	own := b.own.Head+b.own.Steps > 0
	if theirs := says.Head+says.Steps > 0; own != theirs {
		return own
	}
	return peer < b.identity.Self()
}

// believed picks the strangers that are members although they have not been met: some
// of those that cannot be dialled, as they say.
func (b *book) believed(met int) []seam.PeerID {
	var strangers []seam.PeerID
	for peer, e := range b.entries {
		if e.present() && !e.met && e.last.Flags&seam.FlagUnreachable != 0 {
			strangers = append(strangers, peer)
		}
	}
	b.byAge(strangers)
	return strangers[:min(len(strangers), max(minStrangers, met))]
}

// present tells whether a peer takes part, as far as it and memberlist say.
func (e *entry) present() bool { return e.alive && e.meta != nil && !e.waiting }

// turnedAway tells, once after strangers had to be turned away, that there is room for
// some again, and a member to ask for them.
func (b *book) turnedAway() (ask seam.PeerID, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.full || b.crowded() {
		return "", false
	}
	b.full = false
	for peer, e := range b.entries {
		if e.present() && e.met && (ask == "" || e.since.Before(b.entries[ask].since)) {
			ask = peer
		}
	}
	return ask, ask != ""
}

// meetStrangers dials members that are new, until the membership closes.
func (m *Membership) meetStrangers() {
	defer m.wg.Done()
	ticker := time.NewTicker(meetEvery)
	defer ticker.Stop()
	for {
		select {
		case <-m.book.strangers:
		case <-ticker.C:
			m.renew()
			if ask, ok := m.book.turnedAway(); ok {
				_ = m.begin(func() { _ = m.contact(ask) }) // it is asked again at the next push/pull
			}
		case <-m.stopping:
			return
		}
		for _, peer := range m.book.toMeet(time.Now()) {
			m.carrier.introduce(peer)
		}
	}
}

// introduce has a peer greeted.
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
