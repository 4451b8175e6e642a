package peer

import (
	"time"

	"github.com/seed-97356399/murmuration/averaging"
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
type ration struct {
	left float64   // in words; below 0 it is in debt
	at   time.Time // when that was
}

func newRation(now time.Time) ration { return ration{wordsAtFirst, now} }

// take takes a word's worth, and returns how long to wait before it is heard.
func (r *ration) take(now time.Time) time.Duration {
	r.left = min(r.left+now.Sub(r.at).Seconds()*wordsPerSecond, wordsAtOnce) - 1
	r.at = now
	return seconds(max(-r.left, 0) / wordsPerSecond)
}

// pause waits. It reports false if the peer has stopped meanwhile.
func (p *Peer) pause(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.running.Done():
		return false
	}
}

// heedsWords tells whether a machine may have a use for what others tell it, as all have
// but those of which it is known otherwise.
func heedsWords(machine averaging.Machine) bool {
	if _, merges := machine.(averaging.PoolingMachine); merges {
		return true
	}
	algorithm := averaging.AlgorithmOf(machine)
	return algorithm != averaging.NameADPSGD && algorithm != averaging.NameAlone
}
