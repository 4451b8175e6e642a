package sums

// ringSchedule sends each part of the numbers once round the ring to be summed, and once more as
// the sum: 2 (size-1) steps of a size-th each, to the next rank alone.
func ringSchedule(rank, size, length int) (hands, takes []step) {
	next, before := (rank+1)%size, (rank+size-1)%size
	for round := range 2 * (size - 1) {
		adds := round < size-1
		part := func(whose int) step { // what a rank sends in this round
			at := (whose - round + 2*size) % size
			return step{index: round, from: at * length / size, to: (at + 1) * length / size, adds: adds}
		}
		h, t := part(rank), part(before)
		h.peer, h.after, t.peer = next, round, before
		hands, takes = append(hands, h), append(takes, t)
	}
	return hands, takes
}

// treeSchedule sends sums up a binary tree of the ranks, and the sum of all down again: 2 log n
// steps of all the numbers one after the other, of which each chunk is handed on as it comes.
func treeSchedule(rank, size, length int) (hands, takes []step) {
	const width = 2
	above := (rank - 1) / width
	beside := (rank - 1) % width // its place below above
	var below []int
	for r := width*rank + 1; r <= width*(rank+1) && r < size; r++ {
		below = append(below, r)
		takes = append(takes, step{peer: r, to: length, adds: true})
	}
	if rank > 0 {
		hands = append(hands, step{peer: above, to: length, adds: true, after: len(takes)})
		takes = append(takes, step{peer: above, index: beside + min(above, 1), to: length})
	}
	for _, r := range below {
		hands = append(hands, step{peer: r, index: len(hands), to: length, after: len(takes)})
	}
	return hands, takes
}
