package replica

import (
	"math"
	"slices"
)

// order is the sequence in which an exchange sends its slices: by the priority of
// their joint layers, and among those of one priority in a circle from a start that
// differs from one exchange to the next, so that exchanges which a slow link never
// lets finish do not average the front of the model only.
type order struct {
	exchange uint64
	sorted   []int32 // slices by priority, or by urgency
	runs     []run   // none if by urgency

	urgencies []urgency // by slice
}

// run is a part of the order that has one priority.
type run struct{ from, length int }

// set makes the order of an exchange of the slices of a replica.
func (o *order) set(r *Replica, terms Terms) {
	priority := func(i int32) int { return terms.Plan.Priority(r.slices[r.shared[i]].layer) }
	o.exchange = terms.Exchange
	o.sorted, o.runs = o.sorted[:0], o.runs[:0]
	for i := range r.shared {
		o.sorted = append(o.sorted, int32(i))
	}
	if terms.Partial && len(r.shared) > 0 {
		o.urge(r, terms)
		return
	}
	descending := func(i, j int32) int { return priority(j) - priority(i) }
	if !slices.IsSortedFunc(o.sorted, descending) {
		slices.SortStableFunc(o.sorted, descending)
	}
	for i := range o.sorted {
		if i == 0 || priority(o.sorted[i]) != priority(o.sorted[i-1]) {
			o.runs = append(o.runs, run{from: i})
		}
		o.runs[len(o.runs)-1].length++
	}
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

// at is the slice whose turn it is.
func (o *order) at(turn int) int {
	if len(o.runs) == 0 {
		return int(o.sorted[turn])
	}
	for _, r := range o.runs {
		if turn < r.from+r.length {
			return int(o.sorted[r.from+(first(o.exchange, r.length)+turn-r.from)%r.length])
		}
	}
	panic("replica: a turn beyond the last slice")
}

// first is where a run of n slices begins.
func first(exchange uint64, n int) int {
	exchange ^= exchange >> 30 // the finalizer of SplitMix64
	exchange *= 0xbf58476d1ce4e5b9
	exchange ^= exchange >> 27
	exchange *= 0x94d049bb133111eb
	exchange ^= exchange >> 31
	return int(exchange % uint64(n))
}
