package swim

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// An attacker that makes up members needs only a key for each signature, which costs almost
// nothing. To answer it needs a real process. So a peer counts as a member only after an
// authenticated stream with the local peer, opened by either end, or after it has answered
// a datagram with the nonce in it. Until then it is a stranger. Only a bounded number of
// strangers is remembered. A stranger is greeted by datagrams in a wide flock; otherwise,
// or without an answer, it is dialled. docs/design/016 has the reasons.
const (
	// maxMembers bounds the book of peers, departed ones included. When it is full, the
	// peer that departed first is forgotten for a joiner; if none has departed, the joiner
	// is refused.
	maxMembers = 4096
	// rejoinFor is how long a departed peer that is no seed is contacted again.
	rejoinFor = time.Hour
	// minStrangers is the number of strangers that count as members nevertheless, while
	// fewer have been met: two peers that cannot be dialled never meet.
	minStrangers = 4
	// minCrowd is the number of strangers that are remembered, if that is more than
	// crowdShare for each member that has been met.
	minCrowd   = 64
	crowdShare = 2
	// meetAtOnce bounds the strangers that are dialled at a time.
	meetAtOnce = 8
	// strangerTimeout is how long one of two strangers waits to be greeted by the
	// other, so that they make one connection and not two.
	strangerTimeout = 2 * time.Second
	// missedWait is the time after a failed dial until the next, times their number,
	// and maxMissed how many a stranger is given.
	missedWait = 5 * time.Second
	maxMissed  = 3
	// strangerFor is how long a stranger is remembered that memberlist believes dead, so
	// that it does not come back as a new one.
	strangerFor = 10 * time.Minute
	// maxOver bounds the lives of a peer that are remembered to have ended.
	maxOver = 4
)

// entry is what is known of another peer.
type entry struct {
	// meta is the newest verified metadata that announces a record, and last its content;
	// meta is nil if none has been received.
	meta []byte
	last statement
	// onlooker is verified metadata without a record, to recognise it.
	onlooker []byte
	// mark is the mark in the newer of the two.
	mark []byte
	// ceiling is the highest ceiling that it has signed for memberlist's incarnation, and
	// left tells whether its newest record says that it leaves.
	ceiling uint32
	left    bool
	// waiting: a new life of the peer looks on and has announced nothing yet, so last
	// belongs to an earlier life. onlooks is the new life.
	waiting bool
	onlooks uint64
	// outdone: last's life has announced something since it was waiting. So that onlooker
	// was of an earlier life, as the next may be: while the peer is alive, none hides what
	// it has announced any more.
	outdone bool
	// over are the latest of its lives that are known to have ended: their metadata as
	// onlookers has no number that shows its age.
	over    []uint64
	learned []string // addresses not passed to the transport yet
	seed    bool     // the peer was given to Join
	liveness
	acquaintance
}

// liveness is the state of a peer in memberlist.
type liveness struct {
	alive    bool
	departed time.Time // when alive became false
	attempts int       // how often the peer was contacted since
}

// acquaintance is whether and how a peer has been met.
type acquaintance struct {
	met     bool
	since   time.Time // when it was first reported
	dialled bool      // a dial is under way
	missed  int       // dials that failed
	next    time.Time // when to dial again
}

func (e *entry) received() bool { return e.meta != nil || e.onlooker != nil }

func (e *entry) stranger() bool { return e.received() && !e.met }

// present tells whether a peer takes part, according to itself and to memberlist.
func (e *entry) present() bool { return e.alive && e.meta != nil && !e.waiting }

func (e *entry) recognizes(meta []byte) bool {
	return e.meta != nil && bytes.Equal(meta, e.meta) || e.onlooker != nil && bytes.Equal(meta, e.onlooker)
}

func (e *entry) take(s statement, meta []byte) {
	e.mark, e.left, e.ceiling = s.mark, s.left, max(e.ceiling, s.ceiling)
	if len(s.Addresses) > 0 {
		e.learned = s.Addresses
	}
	if s.announced {
		e.outdone = e.meta != nil && s.life == e.last.life && (e.outdone || e.waiting)
		e.end(s.life)
		e.meta, e.last, e.onlooker, e.waiting = bytes.Clone(meta), s, nil, false
		return
	}
	e.onlooker, e.onlooks = bytes.Clone(meta), s.life
	e.waiting = e.waiting || e.meta != nil && s.life != e.last.life && !(e.alive && e.outdone)
}

// end notes which lives are over once one announces something.
func (e *entry) end(announcing uint64) {
	ended := e.last.life
	switch {
	case e.meta != nil && ended != announcing:
	case e.waiting && e.onlooks != announcing:
		ended = e.onlooks
	default:
		return
	}
	if e.over = append(e.over, ended); len(e.over) > maxOver {
		e.over = e.over[1:]
	}
}

// superseded tells whether the peer has announced something since a life of it looked on.
func (e *entry) superseded(life uint64) bool {
	return e.meta != nil && e.last.life == life || slices.Contains(e.over, life)
}

func (e *entry) expendable(other *entry) bool {
	if e.received() != other.received() {
		return !e.received()
	}
	if e.met != other.met {
		return !e.met
	}
	return e.departed.Before(other.departed)
}

// entries are all peers that a book knows.
type entries map[transport.PeerID]*entry

// of is the entry of a peer, a new one if there is none. If there are as many as may be it takes the place of one that is
// not alive: of those that have said nothing first, then of strangers, the longest departed
// first; one that has been met takes that of any stranger. It returns nil if there is none.
func (all entries) of(peer transport.PeerID, met bool) *entry {
	if e := all[peer]; e != nil {
		return e
	}
	if len(all) >= maxMembers {
		var out transport.PeerID
		for id, e := range all {
			if e.seed || e.alive && (e.met || !met) {
				continue
			}
			if out == "" || e.expendable(all[out]) {
				out = id
			}
		}
		if out == "" {
			return nil
		}
		delete(all, out)
	}
	now := time.Now()
	e := &entry{liveness: liveness{departed: now}, acquaintance: acquaintance{since: now}}
	all[peer] = e
	return e
}

// crowded tells whether no further stranger can be remembered.
func (all entries) crowded() bool {
	strangers, met := 0, 0
	for _, e := range all {
		if e.stranger() {
			strangers++
		} else if e.alive {
			met++
		}
	}
	return strangers >= max(minCrowd, crowdShare*met)
}

// toMeet picks the strangers to dial now: those first reported, as many as may be dialled
// at a time. Those that have been dead for long are forgotten.
func (all entries) toMeet(now time.Time) []transport.PeerID {
	under := 0
	var due []transport.PeerID
	for peer, e := range all {
		switch {
		case e.stranger() && !e.alive && !e.seed && now.Sub(e.departed) > strangerFor:
			delete(all, peer)
		case e.dialled:
			under++
		case e.stranger() && e.alive && e.missed < maxMissed && !now.Before(e.next):
			due = append(due, peer)
		}
	}
	due = all.oldest(due, meetAtOnce-under)
	for _, peer := range due {
		all[peer].dialled = true
	}
	return due
}

// oldest are so many of some peers that were reported first.
func (all entries) oldest(peers []transport.PeerID, most int) []transport.PeerID {
	slices.SortFunc(peers, func(x, y transport.PeerID) int {
		return cmp.Or(all[x].since.Compare(all[y].since), cmp.Compare(x, y))
	})
	return peers[:min(len(peers), max(0, most))]
}

// plausible picks the strangers that count as members although they have not been met: some
// of those that say that they cannot be dialled.
func (all entries) plausible(met int) []transport.PeerID {
	var strangers []transport.PeerID
	for peer, e := range all {
		if e.present() && !e.met && e.last.Flags&transport.FlagUnreachable != 0 {
			strangers = append(strangers, peer)
		}
	}
	return all.oldest(strangers, max(minStrangers, met))
}

func (all entries) longest() (longest transport.PeerID) {
	for peer, e := range all {
		if e.present() && e.met && (longest == "" || e.since.Before(all[longest].since)) {
			longest = peer
		}
	}
	return longest
}

// lost picks whom to contact next among those not alive, at most so many: a seed
// first, so that halves of a flock that have lost many others still meet, and then
// those that were tried least since they departed. Each member has an order of its
// own among equals: together they try all of them sooner.
func (all entries) lost(self transport.PeerID, now time.Time, most int, admits func(transport.PeerID, []byte) bool) []transport.PeerID {
	var gone []transport.PeerID
	for peer, e := range all {
		if e.alive || !e.seed && (!e.received() || !e.met || now.Sub(e.departed) > rejoinFor) || e.received() && !admits(peer, e.mark) {
			continue
		}
		gone = append(gone, peer)
	}
	turn := func(peer transport.PeerID) uint64 { return (self + peer).Fingerprint() }
	slices.SortFunc(gone, func(x, y transport.PeerID) int {
		return cmp.Or(cmp.Compare(all[x].attempts, all[y].attempts), cmp.Compare(turn(x), turn(y)))
	})
	if first := slices.IndexFunc(gone, func(peer transport.PeerID) bool { return all[peer].seed }); first > 0 {
		seed := gone[first]
		gone = slices.Insert(slices.Delete(gone, first, first+1), 0, seed)
	}
	gone = gone[:min(len(gone), most)]
	for _, peer := range gone {
		all[peer].attempts++
	}
	return gone
}
