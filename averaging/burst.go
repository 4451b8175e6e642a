package averaging

// maxBurst bounds a burst: one of so many makes the models of any flock one.
const maxBurst = 32

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
