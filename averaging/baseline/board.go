package baseline

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// Board is what the server knows about its workers, itself included while it trains: how
// often each has pushed, and when. A worker that comes late begins with as many pushes as
// the worker with the fewest.
type Board struct {
	workers []worker
}

// worker is a peer that the server works for.
type worker struct {
	id       topology.PeerID
	pushes   uint64
	pushed   time.Duration // the last time
	interval time.Duration // between the last two pushes; 0 if there are not two
	granted  int           // by DSSP: iterations that it may begin without waiting
	clock    uint64        // its own count of pushes that were answered
	state    workerState
	since    time.Duration // since when it is in that state
	samples  int           // of its push; 0 if it has not told
	comes    uint8         // eighths of its push that come or have come
	came     uint8         // those that have
}

// workerState is the state of a worker, as the server knows it.
type workerState uint8

const (
	away    workerState = iota // computes
	coming                     // pushes
	arrived                    // its push is in the sum
	applied                    // its push is in the update that is being made
	held                       // waits at the gate
	leaving                    // is sent the parameters
)

func (b *Board) index(id topology.PeerID) int {
	return slices.IndexFunc(b.workers, func(w worker) bool { return w.id == id })
}

// of is the worker with an id, nil if there is none.
func (b *Board) of(id topology.PeerID) *worker {
	if i := b.index(id); i >= 0 {
		return &b.workers[i]
	}
	return nil
}

// Add adds a worker.
func (b *Board) Add(id topology.PeerID) {
	if b.index(id) < 0 {
		b.workers = append(b.workers, worker{id: id, pushes: b.Pushes(b.Slowest())})
	}
}

// Remove forgets a worker.
func (b *Board) Remove(id topology.PeerID) {
	b.workers = slices.DeleteFunc(b.workers, func(w worker) bool { return w.id == id })
}

// Pushed notes a push of a worker.
func (b *Board) Pushed(id topology.PeerID, now time.Duration) {
	if w := b.of(id); w != nil {
		if w.pushed > 0 {
			w.interval = now - w.pushed
		}
		w.pushes++
		w.pushed = now
	}
}

// Pushes is how often a worker has pushed.
func (b *Board) Pushes(id topology.PeerID) uint64 {
	if w := b.of(id); w != nil {
		return w.pushes
	}
	return 0
}

// Slowest is the worker with the fewest pushes, the first of them; "" if there is none.
func (b *Board) Slowest() topology.PeerID {
	if len(b.workers) == 0 {
		return ""
	}
	return slices.MinFunc(b.workers, func(a, b worker) int { return cmp.Compare(a.pushes, b.pushes) }).id
}

// Lead is how many pushes a worker is ahead of the slowest.
func (b *Board) Lead(id topology.PeerID) int {
	return int(b.Pushes(id) - b.Pushes(b.Slowest()))
}

// Fastest tells whether no other worker has pushed more often.
func (b *Board) Fastest(id topology.PeerID) bool {
	own := b.Pushes(id)
	return !slices.ContainsFunc(b.workers, func(w worker) bool { return w.pushes > own })
}
