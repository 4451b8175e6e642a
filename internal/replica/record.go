package replica

import (
	"sync"
	"time"
)

// record is what an initiator has applied of one exchange.
type record struct {
	exchangeName

	// changing is held, shared, while a slice is applied and noted, and alone to settle: so
	// that the answer to the partner stays true.
	changing sync.RWMutex
	settled  bool
	applied  bitmap

	ended bool          // the exchange is over; guarded by the ledger
	since time.Duration // when that was first seen, or unset
}

const unset time.Duration = -1

// apply carries out the change of one slice and notes it. It reports false, and
// does nothing, once the exchange has been settled.
func (r *record) apply(slice int, change func()) bool {
	r.changing.RLock()
	defer r.changing.RUnlock()
	if r.settled {
		return false
	}
	change()
	r.applied.put(slice)
	return true
}

// exchangeName tells exchanges with partners apart, of all lives of the initiators.
type exchangeName struct {
	partner               string
	incarnation, exchange uint64
}

func (t Terms) name() exchangeName { return exchangeName{t.Partner, t.Incarnation, t.Exchange} }
