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

// leftOut counts lines: those of the partner that the line which tells it names, and
// those of others.
type leftOut struct{ own, others uint64 }

func (l leftOut) fields() (fields []zapcore.Field) {
	if l.own > 0 {
		fields = append(fields, zap.Uint64("left_out", l.own))
	}
	if l.others > 0 {
		fields = append(fields, zap.Uint64("left_out_of_others", l.others))
	}
	return fields
}

// account is what a cause, or a partner in it, may still have written.
type account struct {
	limit *rate.Limiter
	left  uint64
}

func newAccount(every time.Duration, burst int) *account {
	return &account{limit: rate.NewLimiter(rate.Every(every), burst)}
}

// causeAccount has lines left out of all partners of a cause in its left; those that
// accounts of partners count are not in it.
type causeAccount struct {
	*account
	last  zapcore.Entry // that was left out
	since time.Time     // when the first of those was that no line has told; zero if none
}

// untold is a count with the last line that was left out.
type untold struct {
	last zapcore.Entry
	left leftOut
}

// ledger keeps the accounts. Time is that of the lines. It is safe for concurrent use.
type ledger struct {
	mu       sync.Mutex
	causes   *lru.Cache[cause, *causeAccount]
	partners *lru.Cache[pair, *account]
	dropped  []untold  // of causes that were forgotten
	looked   time.Time // when counts were last looked through
}

func newLedger() *ledger {
	l := &ledger{}
	l.causes, _ = lru.NewWithEvict(maxCauses, l.forgotten) // fails for sizes below one only
	l.partners, _ = lru.NewWithEvict(maxPartners, l.merged)
	return l
}

// merged puts the count of a partner that is forgotten to that of all others.
func (l *ledger) merged(p pair, a *account) {
	if c, ok := l.causes.Peek(p.cause); ok {
		c.left += a.left
	}
}

// forgotten keeps the count of a cause that is forgotten until the next look.
func (l *ledger) forgotten(of cause, c *causeAccount) {
	if left := c.left + l.collect(of, ""); left > 0 && len(l.dropped) < maxCauses {
		l.dropped = append(l.dropped, untold{c.last, leftOut{own: left}})
	}
}

// collect takes the counts of all partners of a cause but one.
func (l *ledger) collect(of cause, but string) (left uint64) {
	for _, p := range l.partners.Keys() {
		if p.cause == of && p.partner != but {
			a, _ := l.partners.Peek(p)
			left += a.left
			a.left = 0
		}
	}
	return left
}

// take tells whether a line may be written, and what it then has to tell.
func (l *ledger) take(of cause, partner string, e zapcore.Entry) (left leftOut, pass bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.causes.Get(of)
	if !ok {
		c = &causeAccount{account: newAccount(causeEvery, causeBurst)}
		l.causes.Add(of, c)
	}
	own := c.account
	if partner != "" {
		if own, ok = l.partners.Get(pair{of, partner}); !ok {
			own = newAccount(partnerEvery, partnerBurst)
			l.partners.Add(pair{of, partner}, own)
		}
	}
	if own != c.account && !own.limit.AllowN(e.Time, 1) || !c.limit.AllowN(e.Time, 1) {
		own.left++
		c.last = e
		if c.since.IsZero() {
			c.since = e.Time
		}
		return leftOut{}, false
	}
	if c.since.IsZero() {
		return leftOut{}, true
	}
	left.own, own.left = own.left, 0
	left.others, c.left = c.left+l.collect(of, partner), 0
	c.since = time.Time{}
	return left, true
}

// due is what has waited for so long to be told that it should not wait for another line
// of its cause.
func (l *ledger) due(now time.Time) []untold {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.looked.IsZero() {
		l.looked = now
	}
	if now.Sub(l.looked) < tellEvery {
		return nil
	}
	l.looked = now
	return l.untold(func(c *causeAccount) bool { return now.Sub(c.since) >= tellEvery })
}

func (l *ledger) rest() []untold {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.untold(func(*causeAccount) bool { return true })
}

// untold takes the counts of some of the causes that have any.
func (l *ledger) untold(which func(*causeAccount) bool) []untold {
	counts := l.dropped
	l.dropped = nil
	for _, of := range l.causes.Keys() {
		c, _ := l.causes.Peek(of)
		if c.since.IsZero() || !which(c) {
			continue
		}
		counts = append(counts, untold{c.last, leftOut{own: c.left + l.collect(of, "")}})
		c.left, c.since = 0, time.Time{}
	}
	slices.SortStableFunc(counts, func(a, b untold) int { return strings.Compare(a.last.Message, b.last.Message) })
	return counts
}
