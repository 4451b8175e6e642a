// Package handout decides which member gets which rows of a holder. It keeps the order of an epoch, the
// shares of the takers, and counts of what became of the rows. It sees row numbers only, never their
// bytes. It is pure: time and randomness are arguments.
package handout

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/peer/stats"
)

// Policy says how the rows of an epoch are divided among those that take them.
type Policy uint8

const (
	// Random gives the next rows of the epoch's order to the taker that asks.
	Random Policy = iota
	// RoundRobin gives row i of the epoch's order to taker i mod N. Choose decides N.
	RoundRobin
	// Speed gives shares in proportion to the measured speeds of the takers.
	Speed
)

// Config says which rows a ledger hands out, and how.
type Config struct {
	Rows   int // at least 1, at most math.MaxInt32
	Policy Policy
	Seed   uint64
}

// MaxWeights is the most takers with a weight of their own.
const MaxWeights = 4096

// Patience is how long a share is kept for a taker that is silent: see Ledger.Take.
const Patience = 30 * time.Second

// Ledger keeps account of the rows of one holder. One goroutine at a time uses it. It takes about eight bytes a row.
type Ledger struct {
	config Config
	counts stats.Rows
	epochs uint64 // number of epochs that have begun
	takers map[string]*taker
	spare  []int32       // rows of this epoch in no taker's share
	left   int           // number of rows in the shares of all takers
	dealt  time.Duration // when the rest of the epoch was last divided

	weights map[string]float64 // of takers whose weight is not 1
}

type taker struct {
	share  []int32       // rows reserved for it
	out    int           // runs of rows that it has not reported on
	most   int           // number of rows that it last asked for
	heard  time.Duration // when it last asked, or reported on a run
	speed  speed
	weight float64 // 0 is 1
}

// New makes a ledger that has handed out no rows yet.
func New(c Config) (*Ledger, error) {
	if c.Rows < 1 || c.Rows > math.MaxInt32 || c.Policy > Speed {
		return nil, fmt.Errorf("handing out %d rows by policy %d: want 1 to %d rows, and a known policy", c.Rows, c.Policy, math.MaxInt32)
	}
	return &Ledger{config: c, takers: map[string]*taker{}}, nil
}

// Order is the order of the rows in an epoch: a random one, which the seed decides.
func (c Config) Order(epoch uint64) []int32 {
	order := make([]int32, c.Rows)
	for i := range order {
		order[i] = int32(i)
	}
	rand.New(rand.NewPCG(c.Seed, epoch)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// Counts tells what has been handed out so far.
func (l *Ledger) Counts() stats.Rows { return l.counts }

// Out is how many runs of rows a taker has.
func (l *Ledger) Out(name string) int {
	if of := l.takers[name]; of != nil {
		return of.out
	}
	return 0
}

// Leave removes a taker that holds no rows, until it asks again. Its share is divided among the others.
func (l *Ledger) Leave(name string, now time.Duration) {
	if of := l.takers[name]; of.out == 0 {
		l.spare, l.left = append(l.spare, of.share...), l.left-len(of.share)
		delete(l.takers, name)
		l.deal(now)
	}
}

// Weigh gives a taker another weight than 1, by which its share of an epoch is multiplied; it may come later. While there are weights, a
// ledger that is Random divides as with Speed, and who has had its share waits for the others, as with RoundRobin: else speeds
// alone would decide. It returns false if it knows MaxWeights others.
func (l *Ledger) Weigh(name string, weight float64, now time.Duration) bool {
	if l.weights == nil {
		l.weights = make(map[string]float64)
	}
	if delete(l.weights, name); weight != 1 {
		if len(l.weights) >= MaxWeights {
			return false
		}
		l.weights[name] = weight
	}
	if of := l.takers[name]; of != nil {
		of.weight = weight
	}
	if l.gather(now); l.policy() != Random {
		l.deal(now)
	}
	return true
}

// policy is how rows are divided now.
func (l *Ledger) policy() Policy {
	if l.config.Policy == Random && len(l.weights) > 0 {
		return Speed
	}
	return l.config.Policy
}

// Take hands out the next rows of a taker, at most so many, as a run. It returns none if the taker has to wait, as the rest of the
// epoch belongs to others. An epoch begins when all rows of the previous one have been handed out. The rest of an epoch is divided
// anew when a taker comes, and when one taker has to wait while another has been silent for Patience. With Speed, the last rows
// go to whoever asks.
func (l *Ledger) Take(name string, most int, now time.Duration) []int32 {
	to, deal := l.takers[name], false
	if to == nil {
		to, deal = &taker{heard: now, weight: l.weights[name]}, true
		l.takers[name] = to
	}
	to.most, deal, to.heard = most, deal || now-to.heard > Patience, now
	if len(l.spare)+l.left == 0 {
		maps.DeleteFunc(l.takers, func(_ string, of *taker) bool { return of.out == 0 && now-of.heard > Patience })
		l.spare, deal = l.config.Order(l.epochs), true
		l.epochs++
	}
	from, speed := &to.share, l.policy() == Speed && len(l.weights) == 0
	switch tail := len(l.spare)+l.left <= most*len(l.takers); {
	case l.policy() == Random:
		from = &l.spare
	case len(to.share) == 0 && speed && tail: // whoever asks needs rows now; others may have enough, and not ask
		l.gather(now)
		from, deal = &l.spare, false
	case len(to.share) == 0: // with Speed, it is faster than the speed by which its share was computed
		deal = deal || speed || slices.ContainsFunc(slices.Collect(maps.Values(l.takers)), func(of *taker) bool { return l.late(of, now) })
	}
	if deal {
		l.deal(now)
	}
	n := min(most, len(*from))
	if n < 1 {
		return nil
	}
	rows := slices.Clone((*from)[:n])
	if *from = (*from)[n:]; from == &to.share {
		l.left -= n
	}
	to.out++
	l.counts.Out(n)
	return rows
}

// late tells whether others need not wait for a taker with a share any more: it has been silent for longer than Patience, or
// needs longer for its share at the speed at which it asks now.
func (l *Ledger) late(of *taker, now time.Duration) bool {
	slow := now-l.dealt > Patience && of.speed.value() > 0 && float64(len(of.share)) > of.speed.value()*Patience.Seconds()
	return len(of.share) > 0 && (slow || now-of.heard > Patience)
}

// Settle records what became of a run of a taker: the first rows were trained on, the next are lost, and the rest is unused.
// Lost and unused rows are handed out again.
func (l *Ledger) Settle(name string, run []int32, trained, lost int, now time.Duration) {
	of := l.takers[name]
	of.heard = now
	if of.out--; trained > 0 {
		of.speed.add(trained, of.out > 0 || len(of.share) > 0, now) // with a share, it could have asked
	}
	l.counts.Back(trained, lost, len(run)-trained-lost)
	if again := run[trained:]; len(again) > 0 {
		l.spare = append(l.spare, again...)
		l.deal(now)
	}
}

// Spoilt takes back a run whose first row cannot be read. That row is lost until the next epoch; the others are handed out again.
func (l *Ledger) Spoilt(name string, run []int32, now time.Duration) {
	l.takers[name].out--
	l.counts.Back(0, 1, len(run)-1)
	l.spare = append(l.spare, run[1:]...)
	l.deal(now)
}

// gather takes all shares back, and returns the takers that were not silent for longer than Patience.
func (l *Ledger) gather(now time.Duration) (here []*taker) {
	for _, name := range slices.Sorted(maps.Keys(l.takers)) {
		of := l.takers[name]
		if now-of.heard <= Patience {
			here = append(here, of)
		} else {
			l.counts.TakenBack += uint64(len(of.share))
		}
		l.spare, of.share = append(l.spare, of.share...), nil
	}
	l.left = 0
	return here
}

// deal divides the rest of the epoch, by the policy, among the takers that were not silent for longer than Patience.
func (l *Ledger) deal(now time.Duration) {
	if l.policy() == Random {
		return
	}
	l.dealt = now
	here := l.gather(now)
	if len(here) == 0 {
		return
	}
	rows, speeds := l.spare, speedsOf(here)
	l.spare, l.left = nil, len(rows)
	if l.policy() == Speed {
		divide(rows, here, speeds)
		return
	}
	least := slices.MinFunc(here, func(a, b *taker) int { return cmp.Compare(a.most, b.most) }).most
	chosen := Choose(speeds, max(1, len(rows)/max(1, least)))
	for i, of := range here {
		if !slices.Contains(chosen, i) {
			of.speed = speed{} // measured again once it takes part; until then it counts with the mean
		}
	}
	if len(l.weights) > 0 {
		round := make([]*taker, len(chosen))
		for i, at := range chosen {
			round[i] = here[at]
		}
		divide(rows, round, slices.Repeat([]float64{1}, len(round)))
		return
	}
	for i, row := range rows {
		to := here[chosen[i%len(chosen)]]
		to.share = append(to.share, row)
	}
}

// divide gives takers shares of rows in proportion to a number and their weight. A weight counts beside the largest: products and their
// sum would overflow otherwise, or all be 0.
func divide(rows []int32, among []*taker, by []float64) {
	most := 0.0
	for _, of := range among {
		most = max(most, cmp.Or(of.weight, 1))
	}
	for i, of := range among {
		by[i] *= cmp.Or(of.weight, 1) / most
	}
	for i, n := range Shares(len(rows), by) {
		among[i].share, rows = rows[:n:n], rows[n:]
	}
}

// speedsOf gives the speeds of takers, in rows per second. A taker without a measured speed gets the mean of the others.
func speedsOf(takers []*taker) []float64 {
	speeds, sum, known := make([]float64, len(takers)), 0.0, 0.0
	for i, of := range takers {
		if speeds[i] = of.speed.value(); speeds[i] > 0 {
			sum, known = sum+speeds[i], known+1
		}
	}
	if known == 0 {
		sum, known = 1, 1
	}
	for i := range speeds {
		if speeds[i] == 0 {
			speeds[i] = sum / known
		}
	}
	return speeds
}
