package replica

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// record is what an initiator has applied of one exchange.
type record struct {
	partner               string
	incarnation, exchange uint64

	// changing is held, shared, while a slice is applied and noted, and alone to
	// settle: what the partner is told stays true.
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
	atomic.OrUint64(&r.applied[slice/64], 1<<(slice%64))
	return true
}

// open begins the record of an exchange of n slices.
func (l *Ledger) open(terms Terms, n int) *record {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.spare(terms)
	r.partner, r.incarnation, r.exchange = terms.Partner, terms.Incarnation, terms.Exchange
	r.applied = r.applied.sized(n)
	r.settled, r.ended, r.since = false, false, unset
	l.records = append(l.records, r)
	return r
}

// spare returns a record to fill in: one of the same exchange or, if there are too
// many, the oldest that has ended; else a new one.
func (l *Ledger) spare(terms Terms) *record {
	i := slices.IndexFunc(l.records, func(r *record) bool { return r.is(terms.Partner, terms.Incarnation, terms.Exchange) })
	if i < 0 && len(l.records) >= maxRecords {
		i = slices.IndexFunc(l.records, func(r *record) bool { return r.ended })
	}
	if i < 0 {
		if n := len(l.idle); n > 0 {
			r := l.idle[n-1]
			l.idle = l.idle[:n-1]
			return r
		}
		return &record{}
	}
	r := l.records[i]
	l.records = slices.Delete(l.records, i, i+1)
	return r
}

func (r *record) is(partner string, incarnation, exchange uint64) bool {
	return r.partner == partner && r.incarnation == incarnation && r.exchange == exchange
}

// close ends a record; a clean one is needed no more.
func (l *Ledger) close(r *record, clean bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.ended = true
	if !clean {
		return
	}
	l.records = slices.DeleteFunc(l.records, func(other *record) bool { return other == r })
	if len(l.idle) < maxIdle {
		l.idle = append(l.idle, r)
	}
}

// Unasked is the number of exchanges of this side that did not end well, no longer
// ago than that, and that the partner has not asked about. It may have nothing to ask.
func (l *Ledger) Unasked(now, ago time.Duration) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.records {
		r.changing.RLock()
		if r.ended && !r.settled && (r.since == unset || now-r.since < ago) {
			n++
		}
		r.changing.RUnlock()
	}
	return n
}

// Answer tells a partner which of the slices that it asks about have been applied
// here, and ends the exchange: nothing more of it is applied from now on.
func (l *Ledger) Answer(partner string, exchange uint64, question wire.Status) wire.Settled {
	l.mu.Lock()
	defer l.mu.Unlock() // or the record could become another exchange's
	i := slices.IndexFunc(l.records, func(r *record) bool { return r.is(partner, question.Incarnation, exchange) })
	if i < 0 {
		return wire.Settled{}
	}
	r := l.records[i]
	r.changing.Lock()
	defer r.changing.Unlock()
	r.settled = true
	answer := wire.Settled{Known: true}
	for i, slice := range question.Slices {
		if i < wire.MaxInDoubt && uint64(slice) < uint64(len(r.applied)*64) && r.applied.has(int(slice)) {
			answer.Applied |= 1 << i
		}
	}
	return answer
}
