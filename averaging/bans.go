package averaging

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

const (
	// maxBans bounds each list: the peers in quarantine, the peers known to hold this one in quarantine, and
	// the peers known to fail. Beyond it the longest bans are kept. An attacker that makes identities faster
	// than they are refused must be stopped by admission.
	maxBans = 64
	// maxDoublings bounds the growth of the time for which a peer that holds this
	// one in quarantine is passed over, to 64 times Config.RetryAfter.
	maxDoublings = 6
	// maxRetryDoublings bounds the growth of the time for which a partner that failed is
	// passed over, to four times Config.RetryAfter. With the default, a partner that comes
	// back before it was declared dead is asked within 20 s, or later if others are asked
	// first (maxSlowCost, maxSilentDoublings).
	maxRetryDoublings = 2
	// maxSilentDoublings bounds the growth of the time for which others are asked before a silent partner.
	maxSilentDoublings = 3
	// forever is the last moment that can be represented.
	forever = time.Duration(1<<63 - 1)
)

// bans are peers to avoid, each until some moment, whatever the view says meanwhile. A ban
// that has ended is remembered as long as there is room, so that repeated bans are counted.
type bans []ban

type ban struct {
	peer  topology.PeerID
	until time.Duration
	times int
}

func (b bans) index(peer topology.PeerID) int {
	return slices.IndexFunc(b, func(x ban) bool { return x.peer == peer })
}

// holds tells whether a peer is banned at a moment.
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

// hold bans a peer, and never shortens a ban. In a full list the ban that ends first is
// dropped, even if it is the new one.
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
	first := slices.MinFunc(*b, func(x, y ban) int { return cmp.Compare(x.until, y.until) })
	if first.until < until {
		(*b)[b.index(first.peer)] = fresh
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

// grown is a time doubled for each earlier occurrence, within bounds.
func grown(d time.Duration, before int) time.Duration {
	return min(d, forever>>maxDoublings) << min(before, maxDoublings)
}

// stallPause is how long a peer is put back after an exchange that failed after lasting so long.
func stallPause(lasted, most, retryAfter time.Duration) time.Duration {
	return min(stallCost*min(lasted, forever/stallCost), most*min(retryAfter, forever/most))
}

// later is the moment now+d: now if d is negative, and forever on overflow.
func later(now, d time.Duration) time.Duration {
	if sum := now + max(d, 0); sum >= now {
		return sum
	}
	return forever
}
