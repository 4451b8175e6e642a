package sums

import (
	"math/bits"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// Stripes divide the numbers of a Moved sum: bit i tells that a stripe begins at the i-th 64th of them. A stripe has 2^j
// 64ths, from a multiple of 2^j on. Each is summed by itself, and sent on as soon as it is ready; the last begins, since
// back-propagation has the gradient of the last layers first.
type Stripes uint64

const (
	// mostStripes is the number of stripes at most.
	mostStripes = 64
	// usualStripes bounds them where nothing is known of when numbers are ready: on long links each costs a round trip
	// for each step. A step of a stripe then has about stepNumbers numbers, so that a partner can begin with the first.
	usualStripes = 8
	stepNumbers  = 1 << 18
)

// OneStripe is all numbers in one stripe.
const OneStripe Stripes = 1

// stripe is the at-th, from 0, of so many equal parts of the numbers.
type stripe struct{ at, of int }

// begins tells whether the stripe begins at one of so many numbers, or after it.
func (s stripe) begins(length, from int) bool {
	return uint64(s.at)*uint64(length) >= uint64(from)*uint64(s.of)
}

// list is the stripes, the last first; nil if these are none.
func (s Stripes) list() (list []stripe) {
	for rest, end := uint64(s), mostStripes; end > 0; {
		begin := bits.Len64(rest) - 1
		width := end - begin
		if begin < 0 || bits.OnesCount(uint(width)) != 1 || begin%width != 0 {
			return nil
		}
		list = append(list, stripe{at: begin / width, of: mostStripes / width})
		rest, end = rest&^(1<<begin), begin
	}
	return list
}

// evenly are so many stripes of the same size, a power of two.
func evenly(n int) (s Stripes) {
	for i := range n {
		s |= 1 << (i * mostStripes / n)
	}
	return s
}

// usual are the stripes of numbers that are ready all at once.
func usual(op Op, length, size int) Stripes {
	least, step := 1, length/2
	switch op.shape() {
	case topology.Ring:
		step = length / size
	case topology.Tree:
		least, step = 2, length // a transfer of the whole is one of the owner's own
	}
	return evenly(1 << (bits.Len(uint(min(max(step/stepNumbers, least), usualStripes))) - 1))
}

// Pace is what a coordinator has measured of a sum: when its numbers became ready, how long it was sending, and the
// shortest round trip.
type Pace struct {
	Length         int
	Ready          []Ready // the last numbers first
	Sending, Round time.Duration
}

// Ready tells when the numbers from one on were ready.
type Ready struct {
	From int
	At   time.Duration
}

// stripes divide the next sum, so that what is ready earlier is sent earlier, where that gains more than the round trip
// that a further stripe may cost.
func (p Pace) stripes(op Op, length, size int) Stripes {
	s := usual(op, length, size)
	if p.Length == length && len(p.Ready) > 1 {
		s |= p.split(0, mostStripes)
	}
	return s
}

// split divides a run of 64ths.
func (p Pace) split(begin, end int) Stripes {
	one := Stripes(1) << begin
	if end-begin == 1 {
		return one
	}
	mid := (begin + end) / 2
	both := p.split(begin, mid) | p.split(mid, end)
	earlier, takes := p.at(begin)-p.at(mid), p.Sending*time.Duration(end-mid)/mostStripes
	if both == one|1<<mid && min(earlier, takes) <= p.Round {
		return one
	}
	return both
}

// at is when the numbers from a 64th on were ready.
func (p Pace) at(begin int) time.Duration {
	for _, r := range p.Ready {
		if uint64(r.From)*mostStripes <= uint64(begin)*uint64(p.Length) {
			return r.At
		}
	}
	return p.Ready[len(p.Ready)-1].At
}
