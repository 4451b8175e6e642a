package talks

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// What a partner tells goes before the machine, on the same way as the trainer's steps and
// the course of exchanges. So one that tells much is heard more slowly: what it says
// beyond its ration waits on its side of the stream.
const (
	// wordsPerSecond is how many words of a partner are heard in the long run. A machine
	// in lock-step tells a partner a few in a round, which takes a millisecond or more.
	wordsPerSecond = 2000
	// wordsAtOnce is how many words of its ration a partner can save up, and wordsAtFirst
	// what one has of whom nothing is remembered.
	wordsAtOnce  = 500
	wordsAtFirst = 16
	// maxRations bounds the partners whose rations are remembered: those that spoke last.
	maxRations = 256
)

// ration is what a partner may tell, on all its streams together.
type ration struct{ *rate.Limiter }

func newRation(now time.Time) ration {
	r := ration{rate.NewLimiter(wordsPerSecond, wordsAtOnce)}
	r.AllowN(now, wordsAtOnce-wordsAtFirst)
	return r
}

// take takes a word's worth, and returns how long to wait before it is heard.
func (r ration) take(now time.Time) time.Duration { return r.ReserveN(now, 1).DelayFrom(now) }

// rations are those of partners. They outlive the streams: a partner that begins one after
// the other would have a new one each time. The zero value is ready.
type rations struct {
	mu sync.Mutex
	of *simplelru.LRU[seam.PeerID, ration]
}

// ration is that of a partner.
func (r *rations) ration(partner seam.PeerID, now time.Time) ration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of, _ = simplelru.NewLRU[seam.PeerID, ration](maxRations, nil) // fails of sizes that are not positive
	}
	own, known := r.of.Get(partner)
	if !known {
		own = newRation(now)
		r.of.Add(partner, own)
	}
	return own
}
