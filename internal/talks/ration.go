package talks

import (
	"time"

	"golang.org/x/time/rate"
)

// What a partner tells goes before the machine, on the same way as the trainer's steps and
// the course of exchanges. So one that tells much is heard more slowly: what it says
// beyond its ration waits on its side of the stream.
const (
	// wordsPerSecond is how many words of a partner are heard in the long run. A machine
	// in lock-step tells a partner a few in a round, which takes a millisecond or more.
	wordsPerSecond = 2000
	// wordsAtOnce is how many words of its ration a partner can save up, and wordsAtFirst
	// what it has on a stream that begins: less, or it would begin one after the other.
	wordsAtOnce  = 500
	wordsAtFirst = 16
)

// ration is what a partner may tell.
type ration struct{ *rate.Limiter }

func newRation(now time.Time) ration {
	r := ration{rate.NewLimiter(wordsPerSecond, wordsAtOnce)}
	r.AllowN(now, wordsAtOnce-wordsAtFirst)
	return r
}

// take takes a word's worth, and returns how long to wait before it is heard.
func (r ration) take(now time.Time) time.Duration { return r.ReserveN(now, 1).DelayFrom(now) }
