package baseline

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// Board is what the server knows of its workers, itself included: how often each has
// pushed, and when. A worker that comes late begins with as many pushes as the one that
// has fewest.
type Board struct {
	workers []entry
}

type entry struct {
	id           topology.PeerID
	pushes       uint64
	last, before time.Duration // of the last push, and of the one before it
	times        int           // pushes seen, up to 2
}

func (b *Board) index(id topology.PeerID) int {
	return slices.IndexFunc(b.workers, func(w entry) bool { return w.id == id })
}

// Add takes a worker in.
func (b *Board) Add(id topology.PeerID, pushes uint64) {
	if b.index(id) < 0 {
		b.workers = append(b.workers, entry{id: id, pushes: pushes})
	}
}

// Remove forgets a worker.
func (b *Board) Remove(id topology.PeerID) {
	if i := b.index(id); i >= 0 {
		b.workers = slices.Delete(b.workers, i, i+1)
	}
}

// Pushed notes a push of a worker.
func (b *Board) Pushed(id topology.PeerID, now time.Duration) {
	if i := b.index(id); i >= 0 {
		w := &b.workers[i]
		w.pushes++
		w.before, w.last = w.last, now
		w.times = min(w.times+1, 2)
	}
}

// Pushes is how often a worker has pushed.
func (b *Board) Pushes(id topology.PeerID) uint64 {
	if i := b.index(id); i >= 0 {
		return b.workers[i].pushes
	}
	return 0
}

// Slowest is the worker with the fewest pushes, the first of them; "" if there is none.
func (b *Board) Slowest() topology.PeerID {
	if len(b.workers) == 0 {
		return ""
	}
	slowest := 0
	for i, w := range b.workers {
		if w.pushes < b.workers[slowest].pushes {
			slowest = i
		}
	}
	return b.workers[slowest].id
}

// Lead is how many pushes a worker is ahead of the slowest.
func (b *Board) Lead(id topology.PeerID) int {
	return int(b.Pushes(id) - b.Pushes(b.Slowest()))
}

// Fastest tells whether no worker has pushed more often.
func (b *Board) Fastest(id topology.PeerID) bool {
	own := b.Pushes(id)
	for _, w := range b.workers {
		if w.pushes > own {
			return false
		}
	}
	return true
}

// Interval is when a worker pushed last and how long after its push before. It reports
// false if it has not pushed twice yet.
func (b *Board) Interval(id topology.PeerID) (last, length time.Duration, known bool) {
	i := b.index(id)
	if i < 0 || b.workers[i].times < 2 {
		return 0, 0, false
	}
	w := b.workers[i]
	return w.last, w.last - w.before, true
}
