package averaging

import (
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// exchange is one in flight; the zero value is none.
type exchange struct {
	id      ExchangeID
	peer    topology.PeerID
	began   time.Duration
	running bool
	carried bool // accepted by the partner; of outbound ones
}

func (x exchange) is(e Event) bool {
	return x.running && x.id == e.Exchange && x.peer == e.Peer
}

// partner is a neighbour and the moment until which it is passed over because of its
// answer, unless the view changes.
type partner struct {
	id          topology.PeerID
	barredUntil time.Duration
}
