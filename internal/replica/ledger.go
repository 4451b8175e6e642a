package replica

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// Bounds of a ledger.
const (
	// DefaultKeep is how long slices in doubt wait for an answer.
	DefaultKeep = 10 * time.Minute
	// keepRecords is how many times longer than that an initiator can answer.
	keepRecords = 2
	// maxDoubts bounds the exchanges in doubt, and so their memory: each holds at
	// most wire.MaxInDoubt frames.
	maxDoubts = 8
	// maxRecords bounds the exchanges that an initiator can answer for.
	maxRecords = 256
	// maxIdle bounds the records kept for reuse: a peer initiates one exchange at a
	// time.
	maxIdle = 2
)

// Ledger is what one peer keeps about exchanges that did not end well, so that
// none stays applied at one side only. As the passive side it keeps the
// differences that the partner may have applied, and asks (Ask, Settle); as the
// active side it keeps which slices it has applied, and answers (Answer). Safe for
// concurrent use.
//
// Slices without an answer expire: they are dropped and counted with their norm, which
// bounds how far the sum of the two models has moved.
type Ledger struct {
	replica *Replica

	mu      sync.Mutex
	doubts  []*doubt
	records []*record
	idle    []*record // at most maxIdle, to be used again
	lost    Lost
}

// Lost counts what was given up.
type Lost struct {
	// Slices is the number of slices that may have been applied at one side only.
	Slices uint64
	// Bound is the sum of their differences' norms: the sum of all models has moved by at
	// most so much, and their mean by that over the number of peers.
	Bound float64
}

// doubt is an exchange, served by this side, with slices that the partner may have
// applied and this side has not.
type doubt struct {
	exchangeName
	since   time.Duration
	pending []pending
	norm    float64 // of the differences together
}

// weigh measures the decoded differences, which are what the partner may have applied.
// scratch has room for a slice.
func (d *doubt) weigh(r *Replica, scratch tensor.Vector) {
	squared := 0.0
	for i := range d.pending {
		w := &d.pending[i]
		n := w.values(r.lengthOf(w.slice))
		diff, err := differenceOf(w.codec.Diff, w.code(), scratch[:n])
		if err != nil {
			continue // nobody can have applied it
		}
		w.norm = diff.norm(n)
		squared += w.norm * w.norm
	}
	d.norm = math.Sqrt(squared)
}

// NewLedger makes the ledger of a replica.
func NewLedger(r *Replica) *Ledger { return &Ledger{replica: r} }

// open begins the record of an exchange of n slices.
func (l *Ledger) open(terms Terms, n int) *record {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.spare(terms)
	r.exchangeName = terms.name()
	r.applied = r.applied.sized(n)
	r.settled, r.ended, r.since = false, false, unset
	l.records = append(l.records, r)
	return r
}

// spare returns a record to fill in: one of the same exchange or, if there are too
// many, the oldest that has ended; else a new one.
func (l *Ledger) spare(terms Terms) *record {
	i := slices.IndexFunc(l.records, func(r *record) bool { return r.exchangeName == terms.name() })
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
	about := exchangeName{partner, question.Incarnation, exchange}
	i := slices.IndexFunc(l.records, func(r *record) bool { return r.exchangeName == about })
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

// doubt takes over the unacknowledged differences of a responder.
func (l *Ledger) doubt(p *Responder, now time.Duration) {
	d := &doubt{exchangeName: p.terms.name(), since: now}
	for _, lane := range p.lanes[:p.terms.Lanes] {
		for i := lane.applied; i < lane.answered; i++ {
			w := lane.pending(i)
			d.pending = append(d.pending, *w)
			w.frame = nil // it is the ledger's now
		}
	}
	d.weigh(l.replica, make(tensor.Vector, l.replica.longest))
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.doubts) == maxDoubts {
		l.lose(l.doubts[0].pending)
		l.doubts = slices.Delete(l.doubts, 0, 1)
	}
	l.doubts = append(l.doubts, d)
}

// lose counts what is dropped. The ledger is locked.
func (l *Ledger) lose(dropped []pending) {
	l.lost.Slices += uint64(len(dropped))
	for i := range dropped {
		l.lost.Bound += dropped[i].norm
	}
}

// Ask returns the question to put to a partner about the oldest exchange with it
// that is in doubt, and false if there is none.
func (l *Ledger) Ask(partner string) (exchange uint64, question wire.Status, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.doubts, func(d *doubt) bool { return d.partner == partner })
	if i < 0 {
		return 0, wire.Status{}, false
	}
	d := l.doubts[i]
	question.Incarnation = d.incarnation
	for i := range d.pending {
		question.Slices = append(question.Slices, uint32(d.pending[i].unit))
	}
	return d.exchange, question, true
}

// Settle applies the slices that the partner has applied, according to its answer, and
// drops the rest. If the partner no longer knows the exchange, or the parameters have been
// pooled, all of them are lost. It returns the number of slices of each kind. A second
// answer changes nothing.
//
// question is the one that Ask returned with the exchange.
func (l *Ledger) Settle(partner string, exchange uint64, question wire.Status, answer wire.Settled) (applied, dropped, lost int) {
	l.replica.Hold()
	defer l.replica.Release()
	d := l.remove(partner, exchange, question)
	if d == nil {
		return 0, 0, 0
	}
	var gone []pending
	if !answer.Known || l.replica.pooled {
		gone, d.pending = d.pending, nil
	}
	scratch, done := make([]float32, l.replica.longest), moved{}
	done.size(l.replica)
	for i := range d.pending {
		w := &d.pending[i]
		if answer.Applied>>i&1 == 0 {
			dropped++
		} else if l.replica.commit(w, scratch, &done) == nil {
			applied++
		} else {
			gone = append(gone, *w) // a code made by this side that does not decode
		}
	}
	done.end(l.replica, partner)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose(gone)
	return applied, dropped, len(gone)
}

// remove takes the exchange that a question is about out of the doubts. It returns
// nil if it is none.
func (l *Ledger) remove(partner string, exchange uint64, question wire.Status) *doubt {
	l.mu.Lock()
	defer l.mu.Unlock()
	about := exchangeName{partner, question.Incarnation, exchange}
	i := slices.IndexFunc(l.doubts, func(d *doubt) bool { return d.exchangeName == about && d.asked(question.Slices) })
	if i < 0 {
		return nil
	}
	d := l.doubts[i]
	l.doubts = slices.Delete(l.doubts, i, i+1)
	return d
}

// asked tells whether these are the slices in doubt: an answer that comes late must
// not be taken for one about another exchange of the same number.
func (d *doubt) asked(about []uint32) bool {
	return slices.EqualFunc(d.pending, about, func(w pending, slice uint32) bool { return w.unit == int(slice) })
}

// Partners are those with whom something is in doubt, each once, in the order of
// their oldest doubts.
func (l *Ledger) Partners() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var partners []string
	for _, d := range l.doubts {
		if !slices.Contains(partners, d.partner) {
			partners = append(partners, d.partner)
		}
	}
	return partners
}

// Unresolved is the number of exchanges in doubt with partners that are present.
func (l *Ledger) Unresolved(present func(partner string) bool) int {
	l.mu.Lock()
	doubts := slices.Clone(l.doubts)
	l.mu.Unlock()
	n := 0
	for _, d := range doubts { // present is asked with nothing locked
		if present(d.partner) {
			n++
		}
	}
	return n
}

// Reborn gives up what is in doubt with earlier lives of a partner: a partner that comes
// back with an older model has nothing to reconcile.
func (l *Ledger) Reborn(partner string, incarnation uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.giveUp(func(d *doubt) bool { return d.partner == partner && d.incarnation < incarnation })
}

// Expire gives up what has been in doubt for too long, and drops records that nobody can
// ask for any more.
func (l *Ledger) Expire(now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.giveUp(func(d *doubt) bool { return now-d.since >= DefaultKeep })
	for _, r := range l.records {
		if r.ended && r.since == unset {
			r.since = now
		}
	}
	l.records = slices.DeleteFunc(l.records, func(r *record) bool {
		return r.ended && now-r.since >= keepRecords*DefaultKeep
	})
}

// giveUp loses some doubts. The ledger is locked.
func (l *Ledger) giveUp(which func(*doubt) bool) {
	l.doubts = slices.DeleteFunc(l.doubts, func(d *doubt) bool {
		if !which(d) {
			return false
		}
		l.lose(d.pending)
		return true
	})
}

// Lost is what has been given up so far.
func (l *Ledger) Lost() Lost {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// InDoubt is the number of slices that wait for an answer now, and a bound of how far
// their differences together may have moved the sum of the models.
func (l *Ledger) InDoubt() (n int, norm float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.doubts {
		n += len(d.pending)
		norm += d.norm
	}
	return n, norm
}
