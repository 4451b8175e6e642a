package baseline

import (
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// A leader that dies while it lets the members adopt leaves some that have the result and
// some that have not. Those who have it stay, and whoever looks for a leader asks all: so
// it is one of them who leads from then on, and hands the result out. For that they must
// not send others to a leader that has gone, nor give way to one that knows less.

// mostFollowers outdoes every claim to the seat.
const mostFollowers = 1<<(53-leadBits) - 1

// succeed handles a word of one that has not merged, told to one that has. It reports
// false for those that the ring handles as ever.
func (m *Merge) succeed(now time.Duration, event averaging.Event, actions []averaging.Action) ([]averaging.Action, bool) {
	r := m.ring
	if m.stage != afterMerge || r.over || event.Kind != averaging.Told || event.Word.Round >= r.round {
		return actions, false
	}
	switch event.Word.Kind {
	case wordWho:
		m.unled(now)
	case wordStatus: // it has been told that this peer leads, or did
		return m.outdo(now, "", actions), false
	case wordLead:
		claim := r.claim(event.Word)
		if claim.leader == "" || claim.leader == r.self || claim.leader == r.leader {
			return actions, false
		}
		if claim.leader == event.Peer {
			return m.outdo(now, claim.leader, actions), true
		}
		return actions, true // one that it believes will claim the seat itself
	}
	return actions, false
}

// unled forgets a leader that has been silent since the first that asked for one.
func (m *Merge) unled(now time.Duration) {
	r := m.ring
	switch {
	case r.leads() || r.leader == "":
	case m.asked == 0 || r.heard >= m.asked:
		m.asked = now
	case now-m.asked >= m.deadline/8:
		r.pass(r.leader)
		r.leader = ""
	}
}

// outdo takes the seat, from one that has no result if somebody claims it. Two that have
// it may each have given way to the other: so whoever is asked serves.
func (m *Merge) outdo(now time.Duration, claimant topology.PeerID, actions []averaging.Action) []averaging.Action {
	r := m.ring
	r.core.begin(now, actions)
	if !r.leads() {
		r.enthrone()
	}
	if claimant != "" {
		r.tell(claimant, standing{leader: r.self, followers: mostFollowers, round: r.round}.word(r.lineage))
	}
	r.arm(true, r.interval())
	return r.end()
}
