package replica

import "cmp"

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
