package handout

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
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

// Fate is what became of a run of rows.
type Fate uint8

const (
	// Trained: a gradient was computed of all of them.
	Trained Fate = 1 + iota
	// Returned: nobody looked at them, and they are handed out again as if they never had been.
	Returned
	// Lost: they did not arrive, or who had them died. They are counted, and handed out again.
	Lost
)

// Taker is one that takes rows. Number tells several of one name apart.
type Taker struct {
	Name   string
	Number uint64
}

// Counts are rows, each counted every time that it was handed out. HandedOut is always
// Trained + Lost + Outstanding.
type Counts struct {
	HandedOut, Trained, Lost, Outstanding uint64
	// Epoch counts the orders that have been begun.
	Epoch uint64
}

// ErrRun: a taker tells of a run that it does not have.
var ErrRun = errors.New("no such run of rows was handed out")

// Config is what a ledger needs to know.
type Config struct {
	Rows   int // at least 1, at most math.MaxInt32
	Policy Policy
	Seed   uint64
}

// Ledger is the rows of one holder. It belongs to one goroutine at a time. It takes about eight bytes a row.
type Ledger struct {
	config Config
	counts Counts
	takers map[Taker]*taker
	spare  []int32 // rows of this epoch that are nobody's share
	left   int     // rows in the shares of all takers
	most   int     // the most rows that were asked for at once: about a batch
}

type taker struct {
	share []int32 // that it will get
	runs  map[uint64][]int32
	speed speed
}

// New makes a ledger of rows of which none has been handed out.
func New(c Config) (*Ledger, error) {
	if c.Rows < 1 || c.Rows > 1<<31-1 || c.Policy > Speed {
		return nil, fmt.Errorf("handing out %d rows by policy %d: want 1 to %d rows, and a known policy", c.Rows, c.Policy, 1<<31-1)
	}
	return &Ledger{config: c, takers: map[Taker]*taker{}, most: 1}, nil
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
func (l *Ledger) Counts() Counts { return l.counts }

// Enter lets a taker take part. What is left of the epoch is divided anew.
func (l *Ledger) Enter(t Taker) {
	if l.takers[t] == nil {
		l.takers[t] = &taker{runs: map[uint64][]int32{}}
		l.deal()
	}
}

// Leave ends a taker. What it has is lost, and handed out again; what it would have got is divided anew.
func (l *Ledger) Leave(t Taker) (lost int) {
	gone := l.takers[t]
	if gone == nil {
		return 0
	}
	delete(l.takers, t)
	for _, run := range slices.Sorted(maps.Keys(gone.runs)) {
		rows := gone.runs[run]
		lost += len(rows)
		l.spare = append(l.spare, rows...)
	}
	l.spare, l.left = append(l.spare, gone.share...), l.left-len(gone.share)
	l.counts.Lost, l.counts.Outstanding = l.counts.Lost+uint64(lost), l.counts.Outstanding-uint64(lost)
	l.deal()
	return lost
}

// Take hands out the next rows of a taker, at most so many, as its run of that number, which it has not used
// before. It returns none where the taker has to wait: what is left of the epoch is the others' share.
// An epoch begins when all rows of the one before have been handed out.
func (l *Ledger) Take(t Taker, run uint64, most int) []int32 {
	to := l.takers[t]
	if to == nil || most < 1 || to.runs[run] != nil {
		return nil
	}
	l.most = max(l.most, most)
	if len(l.spare)+l.left == 0 {
		l.spare = l.config.Order(l.counts.Epoch)
		l.counts.Epoch++
		l.deal()
	}
	from := &to.share
	if l.config.Policy == Random {
		from = &l.spare
	} else if len(to.share) == 0 && l.config.Policy == Speed && l.left > l.most*len(l.takers) {
		l.deal() // it is faster than was thought
	}
	n := min(most, len(*from))
	if n == 0 {
		return nil
	}
	rows := slices.Clone((*from)[:n])
	if *from = (*from)[n:]; from == &to.share {
		l.left -= n
	}
	to.runs[run] = rows
	l.counts.HandedOut, l.counts.Outstanding = l.counts.HandedOut+uint64(n), l.counts.Outstanding+uint64(n)
	return rows
}

// Settle takes what became of a run.
func (l *Ledger) Settle(t Taker, run uint64, fate Fate, now time.Duration) error {
	from := l.takers[t]
	if from == nil || from.runs[run] == nil || fate < Trained || fate > Lost {
		return fmt.Errorf("run %d, which came to %d: %w", run, fate, ErrRun)
	}
	rows := from.runs[run]
	n := uint64(len(rows))
	delete(from.runs, run)
	l.counts.Outstanding -= n
	switch fate {
	case Trained:
		l.counts.Trained += n
		from.speed.add(len(rows), len(from.runs) > 0, now)
		return nil
	case Returned:
		l.counts.HandedOut -= n
	default:
		l.counts.Lost += n
	}
	l.spare = append(l.spare, rows...)
	l.deal()
	return nil
}

// Outstanding is the number of runs that a taker has.
func (l *Ledger) Outstanding(t Taker) int {
	if of := l.takers[t]; of != nil {
		return len(of.runs)
	}
	return 0
}

// deal divides what is left of the epoch among the takers, by the policy.
func (l *Ledger) deal() {
	if l.config.Policy == Random || len(l.takers) == 0 {
		return
	}
	order := slices.SortedFunc(maps.Keys(l.takers), func(a, b Taker) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Number, b.Number))
	})
	rows := l.spare
	for _, t := range order {
		rows, l.takers[t].share = append(rows, l.takers[t].share...), nil
	}
	l.spare, l.left = nil, len(rows)
	speeds := l.speeds(order)
	volume := max(1, len(rows)/l.most) // no share is smaller than a batch
	if l.config.Policy == Speed {
		at := 0
		for i, n := range Shares(len(rows), fastest(speeds, volume)) {
			l.takers[order[i]].share = rows[at : at+n : at+n]
			at += n
		}
		return
	}
	chosen := Choose(speeds, volume)
	for i, t := range order {
		if !slices.Contains(chosen, i) {
			l.takers[t].speed = speed{} // it is measured again once it takes part, with the mean until then
		}
	}
	for i, row := range rows {
		to := l.takers[order[chosen[i%len(chosen)]]]
		to.share = append(to.share, row)
	}
}

// speeds are those of takers in their order; one that is not known is the mean of the others.
func (l *Ledger) speeds(order []Taker) []float64 {
	speeds, sum, known := make([]float64, len(order)), 0.0, 0.0
	for i, t := range order {
		if speeds[i] = l.takers[t].speed.value(); speeds[i] > 0 {
			sum, known = sum+speeds[i], known+1
		}
	}
	for i := range speeds {
		if speeds[i] == 0 && known > 0 {
			speeds[i] = sum / known
		} else if speeds[i] == 0 {
			speeds[i] = 1
		}
	}
	return speeds
}
