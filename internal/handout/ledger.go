// Package handout decides who gets which rows of a holder: the order of an epoch, the shares of the
// takers, and what became of the rows. It sees numbers of rows, never their bytes, and is pure:
// time and randomness are arguments.
package handout

import (
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
	// Random gives the next rows of the epoch's order to whoever asks.
	Random Policy = iota
	// RoundRobin gives the i-th row of the epoch's order to the taker i mod N. Choose says how large N is.
	RoundRobin
	// Speed gives shares in proportion to the measured speeds of the takers.
	Speed
)

// Config is what a ledger needs to know.
type Config struct {
	Rows   int // at least 1, at most math.MaxInt32
	Policy Policy
	Seed   uint64
}

// Patience is for how long a share is kept for a taker of which nothing is heard: see Ledger.Take.
const Patience = 30 * time.Second

// Ledger is the rows of one holder. It belongs to one goroutine at a time. It takes about eight bytes a row.
type Ledger struct {
	config Config
	counts stats.Rows
	epochs uint64 // that have begun
	takers map[string]*taker
	spare  []int32 // rows of this epoch that are nobody's share
	left   int     // rows in the shares of all takers
	most   int     // the most rows that were asked for at once
}

type taker struct {
	share []int32       // that it will get
	out   int           // runs of rows that it has
	heard time.Duration // when it last asked, or told of a run
	speed speed
}

// New makes a ledger of rows of which none has been handed out.
func New(c Config) (*Ledger, error) {
	if c.Rows < 1 || c.Rows > math.MaxInt32 || c.Policy > Speed {
		return nil, fmt.Errorf("handing out %d rows by policy %d: want 1 to %d rows, and a known policy", c.Rows, c.Policy, math.MaxInt32)
	}
	return &Ledger{config: c, takers: map[string]*taker{}, most: 1}, nil
}

// Order is the order of the rows in an epoch: a random one, by the seed.
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

// Leave ends a taker, unless it has rows, until it asks again. Its share is divided among the others.
func (l *Ledger) Leave(name string, now time.Duration) {
	if of := l.takers[name]; of.out == 0 {
		l.spare, l.left = append(l.spare, of.share...), l.left-len(of.share)
		delete(l.takers, name)
		l.deal(now)
	}
}

// Take hands out the next rows of a taker, at most so many, as a run. It returns none where the taker has to wait: what is left of
// the epoch is the others' share. An epoch begins when all rows of the one before have been handed out. What is left of it is
// divided anew when a taker comes, and when one has to wait and another has not been heard of for Patience.
func (l *Ledger) Take(name string, most int, now time.Duration) []int32 {
	to, deal := l.takers[name], false
	if to == nil {
		to, deal = &taker{heard: now}, true
		l.takers[name] = to
	}
	l.most, deal, to.heard = max(l.most, most), deal || now-to.heard > Patience, now
	if len(l.spare)+l.left == 0 {
		l.spare, deal = l.config.Order(l.epochs), true
		l.epochs++
	}
	from := &to.share
	if l.config.Policy == Random {
		from = &l.spare
	} else if len(to.share) == 0 {
		faster := l.config.Policy == Speed && l.left > l.most*len(l.takers) // than was thought
		deal = deal || faster || slices.ContainsFunc(slices.Collect(maps.Values(l.takers)), func(of *taker) bool { return len(of.share) > 0 && now-of.heard > Patience })
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

// Settle takes what became of a run of a taker: so many rows, from the first on, were trained on, so many behind them are lost,
// and nobody has looked at the others. All but those that were trained on are handed out again.
func (l *Ledger) Settle(name string, run []int32, trained, lost int, now time.Duration) {
	of := l.takers[name]
	of.heard = now
	if of.out--; trained > 0 {
		of.speed.add(trained, of.out > 0, now)
	}
	l.counts.Back(trained, lost, len(run)-trained-lost)
	if again := run[trained:]; len(again) > 0 {
		l.spare = append(l.spare, again...)
		l.deal(now)
	}
}

// deal divides what is left of the epoch among the takers that were heard of, by the policy.
func (l *Ledger) deal(now time.Duration) {
	if l.config.Policy == Random {
		return
	}
	var here []*taker
	for _, name := range slices.Sorted(maps.Keys(l.takers)) {
		of := l.takers[name]
		if now-of.heard <= Patience {
			here = append(here, of)
		} else {
			l.counts.TakenBack += uint64(len(of.share))
		}
		l.spare, of.share = append(l.spare, of.share...), nil
	}
	if l.left = 0; len(here) == 0 {
		return
	}
	rows, speeds := l.spare, speedsOf(here)
	l.spare, l.left = nil, len(rows)
	if l.config.Policy == Speed {
		for i, n := range Shares(len(rows), speeds) {
			here[i].share, rows = rows[:n:n], rows[n:]
		}
		return
	}
	chosen := Choose(speeds, max(1, len(rows)/l.most))
	for i, of := range here {
		if !slices.Contains(chosen, i) {
			of.speed = speed{} // it is measured again once it takes part, with the mean until then
		}
	}
	for i, row := range rows {
		to := here[chosen[i%len(chosen)]]
		to.share = append(to.share, row)
	}
}

// speedsOf are the speeds of takers; one that is not known is the mean of the others.
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
