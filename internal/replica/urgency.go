package replica

import (
	"cmp"
	"math"
	"slices"
)

// maxAge is how many exchanges that its side initiates a slice waits at most while exchanges are
// partial and complete. From half of it on a slice comes before all that are younger, and each
// exchange carries at least as many slices as then have to: all slices in maxAge/2 exchanges.
const maxAge = 32

// least is how many of n slices a partial exchange carries at least.
func least(n int) int { return (2*n + maxAge - 1) / maxAge }

// urgency says how soon a slice's turn comes in a partial exchange.
type urgency struct {
	age   int
	value float64 // age × movement × priority
}

// overdue is the age from maxAge/2 on, and 0 before.
func (u urgency) overdue() int {
	if u.age < maxAge/2 {
		return 0
	}
	return u.age
}

// compare sorts the most urgent first.
func (u urgency) compare(other urgency) int {
	return cmp.Or(cmp.Compare(other.overdue(), u.overdue()), cmp.Compare(other.value, u.value), cmp.Compare(other.age, u.age))
}

// urge sorts all slices by urgency. Those of equal urgency are in a circle whose start differs from
// one exchange to the next, as in order.set. If only their ages tell them apart, they take turns.
func (o *order) urge(r *Replica, terms Terms) {
	n := len(r.shared)
	o.runs, o.urgencies = o.runs[:0], ring(o.urgencies, n)
	lowest := math.MaxInt
	for _, at := range r.shared {
		lowest = min(lowest, terms.Plan.Priority(r.slices[at].layer))
	}
	for i, s := range r.lockShared() {
		u := urgency{age: s.age, value: float64(s.age) * s.drift.moved(r.of(s)) / math.Sqrt(float64(s.length))}
		u.value *= float64(1 + terms.Plan.Priority(s.layer) - lowest)
		o.urgencies[i] = u
	}
	start := first(o.exchange, n)
	for i := range n {
		o.sorted[i] = int32((start + i) % n)
	}
	slices.SortStableFunc(o.sorted, func(i, j int32) int { return o.urgencies[i].compare(o.urgencies[j]) })
}

// grow counts an exchange that this side has initiated in the age of each slice; one that has been
// exchanged since the one before begins anew.
func (r *Replica) grow() {
	for _, s := range r.lockShared() {
		s.age++
	}
}
