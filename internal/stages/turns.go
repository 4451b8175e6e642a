package stages

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// turns are senders that a member has refused, in order: what becomes free is theirs first, so that a sender that is near, and
// asks again at once, does not keep others out. The zero value has refused nobody.
type turns struct{ refused []turn }

// turn is when a sender was last refused.
type turn struct {
	from topology.PeerID
	at   time.Duration
}

const (
	// keepsTurn is for how long a sender that has not asked again keeps its turn.
	keepsTurn = 3 * lookAgain
	// maxTurns bounds the senders that are remembered.
	maxTurns = 64
)

// take tells whether a sender may have one of so many places that are free.
func (t *turns) take(now time.Duration, from topology.PeerID, free int) bool {
	t.refused = slices.DeleteFunc(t.refused, func(o turn) bool { return now-o.at > keepsTurn })
	at := slices.IndexFunc(t.refused, func(o turn) bool { return o.from == from })
	before := at
	if at < 0 {
		before = len(t.refused)
	}
	if before < free {
		if at >= 0 {
			t.refused = slices.Delete(t.refused, at, at+1)
		}
		return true
	}
	switch {
	case at >= 0:
		t.refused[at].at = now
	case len(t.refused) < maxTurns:
		t.refused = append(t.refused, turn{from, now})
	}
	return false
}
