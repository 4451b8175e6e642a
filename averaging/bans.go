package averaging

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

const (
	// maxBans bounds how many peers a machine keeps in quarantine, how many it knows
	// to hold this one in theirs, and how many it knows to fail. Beyond it the longest are kept: whoever can
	// make identities faster than they are refused is a matter of admission.
	maxBans = 64
	// maxDoublings bounds the growth of the time for which a peer that holds this
	// one in quarantine is passed over, to 64 times Config.RetryAfter.
	maxDoublings = 6
	// maxRetryDoublings bounds the growth of the time for which a partner that failed
	// is passed over, to four times Config.RetryAfter: with the default, one that
	// nobody knows to be dead, and that comes back, is met within 20 s; if others go first,
	// it is later (maxSlowCost, maxSilentDoublings).
	maxRetryDoublings = 2
	// maxSilentDoublings bounds that for which others go before one that says nothing.
	maxSilentDoublings = 3
	// forever is the last moment there is.
	forever = time.Duration(1<<63 - 1)
)

// bans are peers to keep away from until some moment each, whatever the view
// says meanwhile. One whose moment has passed is remembered as long as there is
// room, so that a peer banned again is known for it.
type bans []ban

type ban struct {
	peer  topology.PeerID
	until time.Duration
	times int
}

func (b bans) index(peer topology.PeerID) int {
	return slices.IndexFunc(b, func(x ban) bool { return x.peer == peer })
}

// holds tells whether a peer is to be kept away from at a moment.
func (b bans) holds(peer topology.PeerID, now time.Duration) bool {
	i := b.index(peer)
	return i >= 0 && now < b[i].until
}

// times is how often a peer was banned, as far as that is remembered.
func (b bans) times(peer topology.PeerID) int {
	if i := b.index(peer); i >= 0 {
		return b[i].times
	}
	return 0
}

// hold bans a peer, never for less than it is banned already. In a full list the
// one that ends first gives way, be it the new one.
func (b *bans) hold(peer topology.PeerID, until time.Duration) {
	if i := b.index(peer); i >= 0 {
		(*b)[i].until = max((*b)[i].until, until)
		(*b)[i].times++
		return
	}
	fresh := ban{peer: peer, until: until, times: 1}
	if len(*b) < maxBans {
		*b = append(*b, fresh)
		return
	}
	first := 0
	for i := range *b {
		if (*b)[i].until < (*b)[first].until {
			first = i
		}
	}
	if (*b)[first].until < until {
		(*b)[first] = fresh
	}
}

// lift forgets a peer.
func (b *bans) lift(peer topology.PeerID) {
	if i := b.index(peer); i >= 0 {
		*b = slices.Delete(*b, i, i+1)
	}
}

// retain forgets the peers that are not to be kept.
func (b *bans) retain(keep func(topology.PeerID) bool) {
	*b = slices.DeleteFunc(*b, func(x ban) bool { return !keep(x.peer) })
}

// grown is a time doubled as often as something has happened before, within
// bounds.
func grown(d time.Duration, before int) time.Duration {
	return min(d, forever>>maxDoublings) << min(before, maxDoublings)
}

// stallPause is how long a peer has less for an exchange that lasted and came to nothing.
func stallPause(lasted, most, retryAfter time.Duration) time.Duration {
	return min(stallCost*min(lasted, forever/stallCost), most*min(retryAfter, forever/most))
}

// later is a moment that is some time away: now if the time is negative, and the
// last moment there is if it is beyond that.
func later(now, d time.Duration) time.Duration {
	if sum := now + max(d, 0); sum >= now {
		return sum
	}
	return forever
}
