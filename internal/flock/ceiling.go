package flock

import (
	"math"
	"slices"
)

const (
	// credit is how many times the median a member's word on its own steps may
	// count: what it claims beyond is ignored. A lower one would leave out more of
	// what the fast peers of an unequal flock have really done.
	credit = 2
	// oneLiarIn is among how many members one may lie and add nothing: nobody's word
	// counts for more than that of the most advanced of the others, of whom so many are
	// left out.
	oneLiarIn = 5
)

// Believable is the most that one peer can have done in a flock whose models have these
// ages, which it sorts.
func Believable(ages []uint64) uint64 {
	if len(ages) == 0 {
		return 0
	}
	slices.Sort(ages)
	middle := len(ages) / 2
	median := ages[middle]
	if len(ages)%2 == 0 {
		low := ages[middle-1]
		median = low + (median-low)/2
	}
	most := min(median, math.MaxUint64/credit) * credit
	if leftOut := len(ages) / oneLiarIn; leftOut > 0 {
		most = min(most, ages[len(ages)-1-leftOut])
	}
	return most
}

// plus adds numbers that others have said: it stays at the highest.
func plus(a, b uint64) uint64 {
	if b > math.MaxUint64-a {
		return math.MaxUint64
	}
	return a + b
}
