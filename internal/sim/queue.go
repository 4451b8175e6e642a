package sim

import (
	"container/heap"
	"time"
)

// Queue holds what is due in a world and the world's clock. The zero value is an
// empty world at time zero. It is not safe for concurrent use: one goroutine is
// the world.
type Queue struct {
	now   time.Duration
	added uint64
	due   happenings
}

// Now is the world's time since its beginning.
func (q *Queue) Now() time.Duration { return q.now }

// After lets something happen when d has passed; at once, but after all that is
// due by now, if d is not positive. What is due at the same moment happens in the
// order in which it was added.
func (q *Queue) After(d time.Duration, do func()) {
	q.added++
	heap.Push(&q.due, happening{at: q.now + max(d, 0), order: q.added, do: do})
}

// Run lets happen all that is due up to and at the given time, what that brings
// about included, and leaves the clock there. It returns how much happened.
func (q *Queue) Run(until time.Duration) (happened int) {
	for len(q.due) > 0 && q.due[0].at <= until {
		next := heap.Pop(&q.due).(happening)
		q.now = next.at
		next.do()
		happened++
	}
	q.now = max(q.now, until)
	return happened
}

// Len is the number of things that wait.
func (q *Queue) Len() int { return len(q.due) }

// happening is something due; order breaks ties.
type happening struct {
	at    time.Duration
	order uint64
	do    func()
}

// happenings is a heap, the earliest first.
type happenings []happening

func (h happenings) Len() int { return len(h) }

func (h happenings) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].order < h[j].order
}

func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *happenings) Push(x any) { *h = append(*h, x.(happening)) }

func (h *happenings) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = happening{} // let go of the closure
	*h = old[:len(old)-1]
	return last
}
