package sim

import "time"

// Queue holds the future events of a world, and the world's clock. The zero
// value is an empty world at time zero. It is not safe for concurrent use: one
// goroutine is the world.
type Queue struct {
	now   time.Duration
	added uint64
	doing uint64 // order of the current event
	due   happenings[func()]
}

// Now is the world's time since its beginning.
func (q *Queue) Now() time.Duration { return q.now }

// After calls do when d has passed. If d is not positive, that is now, after all
// events that are due. Events at the same time happen in the order in which they
// were added, which After returns.
func (q *Queue) After(d time.Duration, do func()) (order uint64) {
	q.added++
	q.due.push(happening[func()]{at: q.now + max(d, 0), order: q.added, what: do})
	return q.added
}

// Run executes all events that are due up to and at the given time, including those
// that they add, and leaves the clock there. It returns how many it executed.
func (q *Queue) Run(until time.Duration) (happened int) {
	for len(q.due) > 0 && q.due[0].at <= until {
		next := q.due.pop()
		q.now, q.doing = next.at, next.order
		next.what()
		happened++
	}
	q.now = max(q.now, until)
	return happened
}

// Len is the number of future events.
func (q *Queue) Len() int { return len(q.due) }

// happening is a future event; order breaks ties.
type happening[T any] struct {
	at    time.Duration
	order uint64
	what  T
}

// happenings is a heap, the earliest first. container/heap would allocate an
// interface value for each.
type happenings[T any] []happening[T]

func (h happenings[T]) before(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].order < h[j].order
}

func (h *happenings[T]) push(x happening[T]) {
	*h = append(*h, x)
	for all, i := *h, len(*h)-1; i > 0; {
		above := (i - 1) / 2
		if !all.before(i, above) {
			return
		}
		all[i], all[above] = all[above], all[i]
		i = above
	}
}

func (h *happenings[T]) pop() happening[T] {
	all := *h
	first, last := all[0], len(all)-1
	all[0], all[last] = all[last], happening[T]{} // so that the collector can free it
	all = all[:last]
	*h = all
	for i := 0; ; {
		least := i
		for below := 2*i + 1; below <= 2*i+2 && below < last; below++ {
			if all.before(below, least) {
				least = below
			}
		}
		if least == i {
			return first
		}
		all[i], all[least] = all[least], all[i]
		i = least
	}
}
