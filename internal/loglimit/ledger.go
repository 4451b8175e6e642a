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

// How many lines are written at once, and how long each further one has to wait.
const (
	partnerBurst = 3
	partnerEvery = time.Minute
	causeBurst   = 10
	causeEvery   = 10 * time.Second
	// maxCauses and maxPartners bound the causes and partners that are kept.
	maxCauses   = 256
	maxPartners = 1024
	// tellEvery is how long a count may wait for a line that reports it, if any line is written.
	tellEvery = time.Minute
)

// cause is what lines have in common that are limited together.
type cause struct{ logger, message string }

// pair is a cause and the partner who is responsible.
type pair struct {
	cause
	partner string
}

// account has the lines that a cause may still write. It counts the lines left out since the last one that reported
// such counts, by partner. Under "" are the lines without a partner and of partners that are not kept any more.
type account struct {
	limit *rate.Limiter
	left  map[string]uint64
	last  zapcore.Entry // the last line left out
	since time.Time     // when the first line was left out
}

// omitted is the number of lines left out, of the named partner and of others, with the last of them.
type omitted struct {
	last        zapcore.Entry
	own, others uint64
}

// take removes the counts of an account, for a line of one partner.
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

// ledger has the accounts. Its time is that of the lines. It is safe for concurrent use.
type ledger struct {
	mu       sync.Mutex
	causes   *lru.Cache[cause, *account]
	partners *lru.Cache[pair, *rate.Limiter]
	dropped  []omitted // of causes that are not kept any more
	looked   time.Time // when the counts were last checked
}

func newLedger() *ledger {
	l := &ledger{}
	l.causes, _ = lru.NewWithEvict(maxCauses, l.forgotten) // fails only for sizes below one
	l.partners, _ = lru.NewWithEvict(maxPartners, l.merge)
	return l
}

// forgotten keeps the count of a removed cause until the next check.
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

// merge adds the count of a removed partner to that of lines without a partner.
func (l *ledger) merge(p pair, _ *rate.Limiter) {
	if a, ok := l.causes.Peek(p.cause); ok && a.left[p.partner] > 0 {
		a.left[""] += a.left[p.partner]
		delete(a.left, p.partner)
	}
}

// take tells whether a line may be written, and which counts it then has to report.
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

// due returns the counts that have waited so long that they should not wait for another line of their cause.
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

// takeOmitted removes the counts that have waited long enough since their first line.
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
