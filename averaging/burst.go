package averaging

// burst is a series of exchanges, one after the other; the zero value is none.
type burst struct {
	left int // exchanges that follow at once
}

// proposed notes a proposal of a burst of so many exchanges, again if another partner has refused,
// and returns the index of the partner to ask next: the first after the last of several.
func (b *burst) proposed(again bool, size, next int) int {
	switch {
	case again:
	case b.left > 0:
		b.left--
	default:
		b.left = size - 1
	}
	if b.left == 0 && size > 1 {
		return 0
	}
	return next
}

// inBurst is the order of links, given in the overlay's (topology.Overlay), in which a burst takes
// them: the nearest, then those forward from the farthest to the nearest, then the others. If the
// classes have 2^k members each, and all make k+1 exchanges in this order at once, every model is
// the mean of all.
func inBurst(partners []partner) []partner {
	ordered := make([]partner, 0, len(partners))
	take := func(i int) { ordered = append(ordered, partners[i]) }
	if len(partners) > 0 {
		take(0)
	}
	for i := (len(partners) - 2) | 1; i > 0; i -= 2 {
		if i < len(partners) {
			take(i)
		}
	}
	for i := 2; i < len(partners); i += 2 {
		take(i)
	}
	return ordered
}
