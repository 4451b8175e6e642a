package sums

import (
	"math/bits"
	"slices"

	"github.com/seed-97356399/murmuration/topology"
)

// step is a transfer between two participants in an attempt, as one of them sees it.
type step struct {
	peer     int  // the rank of the other
	index    int  // how many steps the sender has sent before
	from, to int  // the numbers; of a gathering, by how many ranks blocks stand beyond the receiver's
	after    int  // what the sender must have taken in full before it can hand on all of it
	adds     bool // the receiver adds its own, else it replaces its own
}

// schedule is the steps that the participant of a rank sends and receives, in order.
//
// Numbers are summed by halving and distributed by doubling: 2^k of the n ranks are the core, with 2^k <= n
// < 2^(k+1). In round i the core ranks that differ in the i-th highest bit alone each send the other the
// half that this is to keep, of what both kept before, until each keeps a 2^k-th, in which all are added;
// then they send each other what they have, in the reverse order. The other ranks have two partners in the
// core, which keep the two halves in the first round: each adds a half, and returns it. So nobody is handed
// more than a half of what one brings, but by one that sums with it alone, and the order of additions
// follows from the ranks.
//
// Rings and trees have schedules of their own. A gathering sends in round i what it has to the rank 2^i before it, whatever n.
func schedule(op Op, rank, size, length int) (hands, takes []step) {
	switch {
	case op.shape() == topology.Ring:
		return ringSchedule(rank, size, length)
	case op.shape() == topology.Tree:
		return treeSchedule(rank, size, length)
	case op == Gather:
		for distance := 1; distance < size; distance *= 2 {
			s := step{index: len(takes), from: distance, to: min(2*distance, size), after: len(takes)}
			s.peer = (rank + size - distance) % size
			hands = append(hands, s)
			s.peer = (rank + distance) % size
			takes = append(takes, s)
		}
		return hands, takes
	}
	k := bits.Len(uint(size)) - 1
	hands, takes = make([]step, 0, 2*k+2), make([]step, 0, 2*k+2)
	core, half := 1<<k, 1<<k/2
	part := func(peer, index, whose, round, after int) step { // what one of the core keeps after a round
		s := step{peer: peer, index: index, to: length, after: after}
		for i := range round {
			if mid := s.from + (s.to-s.from)/2; whose&(half>>i) == 0 {
				s.to = mid
			} else {
				s.from = mid
			}
		}
		return s
	}
	if rank >= core {
		for i := range 2 {
			peer := (rank-core)%half + i*half
			s := part(peer, i, peer, 1, 0)
			s.adds = true
			hands = append(hands, s)
			takes = append(takes, part(peer, 2*k+(rank-core)/half, peer, 1, 0))
		}
		return hands, takes
	}
	hand := func(s step, adds bool) { s.adds = adds; hands = append(hands, s) }
	take := func(s step, adds bool) { s.adds = adds; takes = append(takes, s) }
	for i := range k {
		peer := rank ^ half>>i
		hand(part(peer, i, peer, i+1, len(takes)), true)
		take(part(peer, i, rank, i+1, 0), true)
		for other := rank%half + core; i == 0 && other < size; other += half {
			take(part(other, rank/half, rank, 1, 0), true)
		}
	}
	for i := range k {
		peer := rank ^ 1<<i
		hand(part(peer, k+i, rank, k-i, len(takes)), false)
		take(part(peer, k+i, peer, k-i, 0), false)
	}
	for other := rank%max(half, 1) + core; other < size; other += half {
		hand(part(other, len(hands), rank, 1, len(takes)-1), false)
	}
	return hands, takes
}

// taken is the number of steps that the participant of rank 0 receives; by a tree it is not known here.
func taken(op Op, size int) int {
	switch {
	case op.shape() == topology.Ring:
		return 2 * (size - 1)
	case op == Gather:
		return bits.Len(uint(size - 1))
	}
	k := bits.Len(uint(size)) - 1
	core, half := 1<<k, max(1<<k/2, 1)
	return 2*k + (size-core+half-1)/half
}

// partners are the ranks in a schedule, sorted.
func partners(hands, takes []step) []int {
	var ranks []int
	for _, s := range slices.Concat(hands, takes) {
		ranks = append(ranks, s.peer)
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}
