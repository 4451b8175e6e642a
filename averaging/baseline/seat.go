package baseline

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// seat is who leads: coordinates the ring or serves the parameters. The one who does
// goes on as long as it lives; after it comes the next in the view's order, the peers
// that cannot be dialled last. A peer that knows no leader asks; the first in the order
// claims the seat when all the others say that they know none, or say nothing for half
// the deadline.
//
// A lineage names a sequence of updates: the models of two peers are the same at the
// same round of the same lineage. Who claims the seat begins one, unless nobody had any:
// so what two leaders do apart, each thinking the other dead, is never mixed. When they
// meet, the one with fewer followers gives way, then the one with fewer rounds, then the
// later in the order (in a merge rounds count first); those who give way take the parameters of the other lineage.
type seat struct {
	self    topology.PeerID
	named   topology.PeerID
	order   []topology.PeerID // members, in the order in which they are asked
	leader  topology.PeerID
	lineage uint64 // of this peer's parameters
	passed  []topology.PeerID
	none    []topology.PeerID // have said that they know no leader and have no lineage
	asking  bool
	asked   time.Duration // since when
	heard   time.Duration // when the leader spoke last
	result  bool          // there is one round, and whoever has made it leads, however few follow
}

// adopt takes the members of a view.
func (s *seat) adopt(overlay *topology.Overlay) {
	view := overlay.View()
	s.order = s.order[:0]
	for _, unreachable := range []bool{false, true} {
		for i := range view.Len() {
			if m := view.At(i); m.Unreachable == unreachable {
				s.order = append(s.order, m.ID)
			}
		}
	}
	here := func(id topology.PeerID) bool { return !slices.Contains(s.order, id) }
	s.passed = slices.DeleteFunc(s.passed, here)
	s.none = slices.DeleteFunc(s.none, here)
}

func (s *seat) member(id topology.PeerID) bool { return slices.Contains(s.order, id) }

func (s *seat) leads() bool { return s.leader == s.self }

// pass notes that a peer is not to be reckoned with until it speaks.
func (s *seat) pass(id topology.PeerID) {
	if id != s.self && !slices.Contains(s.passed, id) && s.member(id) {
		s.passed = append(s.passed, id)
	}
}

func (s *seat) spoke(id topology.PeerID, now time.Duration) {
	s.passed = slices.DeleteFunc(s.passed, func(x topology.PeerID) bool { return x == id })
	if id == s.leader {
		s.heard = now
	}
}

// first is the first in the order of those that are reckoned with, this peer included;
// to one that has taken part, those are that have too, as far as it knows.
func (s *seat) first() topology.PeerID {
	if s.named != "" {
		return s.named
	}
	for _, id := range s.order {
		fresh := s.lineage != 0 && slices.Contains(s.none, id)
		if id == s.self || !fresh && !slices.Contains(s.passed, id) {
			return id
		}
	}
	return s.self
}

// others are the members that are reckoned with, this peer excluded.
func (s *seat) others(yield func(topology.PeerID) bool) {
	for _, id := range s.order {
		if id != s.self && !slices.Contains(s.passed, id) && !yield(id) {
			return
		}
	}
}

// alone tells whether all others have said that they know no leader.
func (s *seat) alone() bool {
	for id := range s.others {
		if !slices.Contains(s.none, id) {
			return false
		}
	}
	return true
}

// find finds the member of a mark.
func (s *seat) find(m uint64) topology.PeerID {
	for _, id := range s.order {
		if mark(id) == m {
			return id
		}
	}
	return ""
}

// before tells whether a comes before b in the order.
func (s *seat) before(a, b topology.PeerID) bool {
	i, j := slices.Index(s.order, a), slices.Index(s.order, b)
	return i >= 0 && (j < 0 || i < j)
}

// next is the lineage that a peer begins which claims the seat at a moment, for the count-th
// time: never 0, another for each count, and another in each of the peer's lives, of which
// no two elect a leader after exactly the same time.
func (s *seat) next(count uint64, now time.Duration) uint64 {
	const spread = 0x9e3779b97f4a7c15 // odd, and far from what the counts add
	return ((s.lineage*31+mark(s.self))*1_000_003 + uint64(now)*spread + 2*count) | 1
}

// standing is what a claim to the seat rests on.
type standing struct {
	leader    topology.PeerID
	followers uint64
	round     uint64
}

// beats tells whether a has the better claim.
func (s *seat) beats(a, b standing) bool {
	switch {
	case s.result && a.round != b.round:
		return a.round > b.round
	case a.followers != b.followers:
		return a.followers > b.followers
	case a.round != b.round:
		return a.round > b.round
	}
	return s.before(a.leader, b.leader)
}

func (s *seat) claim(w averaging.Word) standing {
	followers, m := unpacked(w.Value, leadBits)
	return standing{leader: s.find(m), followers: followers, round: w.Round}
}

func (x standing) word(lineage uint64) averaging.Word {
	return word(wordLead, x.round, lineage, packed(x.followers, mark(x.leader), leadBits))
}
