package orders

import (
	"sync/atomic"

	"github.com/seed-97356399/murmuration/peer/stats"
)

// counts counts the outcomes of control messages.
type counts struct {
	taken, known, malformed, oversize, foreign, forged, unasked, hasty atomic.Uint64
}

func (c *counts) stats(paused bool) stats.Control {
	return stats.Control{
		Taken: c.taken.Load(), Known: c.known.Load(), Malformed: c.malformed.Load(), Oversize: c.oversize.Load(),
		Foreign: c.foreign.Load(), Forged: c.forged.Load(), Unasked: c.unasked.Load(), Hasty: c.hasty.Load(), Paused: paused,
	}
}
