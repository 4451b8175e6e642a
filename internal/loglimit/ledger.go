package loglimit

import (
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/time/rate"
)

// Lines that are written at once, and then at most one in the time.
const (
	partnerBurst = 3
	partnerEvery = time.Minute
	causeBurst   = 10
	causeEvery   = 10 * time.Second
	// maxCauses and maxPartners bound what is remembered.
	maxCauses   = 256
	maxPartners = 1024
	// tellEvery is how long a count waits for a line that tells it, if any line is
	// written at all.
	tellEvery = time.Minute
)

// cause is what lines are alike in.
type cause struct{ logger, message string }

// pair is a cause and who brings it about.
type pair struct {
	cause
	partner string
}

// account is what a cause may still have written, and its lines that were left out since the
// last line that told of them: their number by partner, with those of partners that are
// forgotten, or that no line named, under "".
type account struct {
	limit *rate.Limiter
	left  map[string]uint64
	last  zapcore.Entry // that was left out
	since time.Time     // when the first was
}

// omitted is the number of lines that were left out, of the partner that is named and of
// others, with the last of them.
type omitted struct {
	last        zapcore.Entry
	own, others uint64
}

// take takes the counts of an account, for a line of one partner.
func (a *account) take(partner string) omitted {
	u := omitted{last: a.last}
	for of, n := range a.left {
		if of == partner {
			u.own = n
		} else {
			u.others += n
		}
	}
	clear(a.left)
	return u
}

func (u omitted) fields() (fields []zapcore.Field) {
	if u.own > 0 {
		fields = append(fields, zap.Uint64("left_out", u.own))
	}
	if u.others > 0 {
		fields = append(fields, zap.Uint64("left_out_of_others", u.others))
	}
	return fields
}

// ledger keeps the accounts. Time is that of the lines. It is safe for concurrent use.
type ledger struct {
	mu       sync.Mutex
	causes   *lru.Cache[cause, *account]
	partners *lru.Cache[pair, *rate.Limiter]
	dropped  []omitted // of causes that were forgotten
	looked   time.Time // when counts were last looked through
}

func newLedger() *ledger {
	l := &ledger{}
	l.causes, _ = lru.NewWithEvict(maxCauses, l.forgotten) // fails for sizes below one only
	l.partners, _ = lru.NewWithEvict(maxPartners, l.merge)
	return l
}

// forgotten keeps the count of a cause that is forgotten until the next look.
func (l *ledger) forgotten(_ cause, a *account) {
	if len(l.dropped) < maxCauses {
		l.drop(a)
	}
}

func (l *ledger) drop(a *account) {
	if u := a.take(""); u.own+u.others > 0 {
		l.dropped = append(l.dropped, omitted{last: u.last, own: u.own + u.others})
	}
}

// merge puts the count of a partner that is forgotten to that of nobody.
func (l *ledger) merge(p pair, _ *rate.Limiter) {
	if a, ok := l.causes.Peek(p.cause); ok && a.left[p.partner] > 0 {
		a.left[""] += a.left[p.partner]
		delete(a.left, p.partner)
	}
}

// take tells whether a line may be written, and what it then has to tell.
func (l *ledger) take(of cause, partner string, e zapcore.Entry) (left omitted, pass bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.causes.Get(of)
	if !ok {
		a = &account{limit: rate.NewLimiter(rate.Every(causeEvery), causeBurst), left: make(map[string]uint64)}
		l.causes.Add(of, a)
	}
	own, ok := l.partners.Get(pair{of, partner})
	if !ok && partner != "" {
		own = rate.NewLimiter(rate.Every(partnerEvery), partnerBurst)
		l.partners.Add(pair{of, partner}, own)
	}
	if (own == nil || own.AllowN(e.Time, 1)) && a.limit.AllowN(e.Time, 1) {
		return a.take(partner), true
	}
	if len(a.left) == 0 {
		a.since = e.Time
	}
	a.left[partner]++
	a.last = e
	return omitted{}, false
}

// due is what has waited for so long to be told that it should not wait for another line
// of its cause.
func (l *ledger) due(now time.Time) []omitted {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.looked.IsZero() {
		l.looked = now
	}
	if now.Sub(l.looked) < tellEvery {
		return nil
	}
	l.looked = now
	return l.takeOmitted(func(since time.Time) bool { return now.Sub(since) >= tellEvery })
}

func (l *ledger) rest() []omitted {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.takeOmitted(func(time.Time) bool { return true })
}

// takeOmitted takes the counts that have waited for long enough, since their first line.
func (l *ledger) takeOmitted(enough func(since time.Time) bool) []omitted {
	for _, a := range l.causes.Values() {
		if enough(a.since) {
			l.drop(a)
		}
	}
	counts := l.dropped
	l.dropped = nil
	slices.SortStableFunc(counts, func(a, b omitted) int { return strings.Compare(a.last.Message, b.last.Message) })
	return counts
}
