package replica

import "math/rand/v2"

// places are those of values that are looked at, one in each of equal parts of what is
// shared. They are drawn: who knew them could push everywhere else.
type places struct {
	at      []int // within their slices
	overall []int // within the vector
	first   []int // in at, by shared slice, and the end
}

// newPlaces draws at most so many places in all, and so many a slice where slices are few;
// a little more where they are unequal.
func newPlaces(r *Replica, seed uint64, most, slice int) (p places) {
	rng := rand.New(rand.NewPCG(seed, uint64(most)))
	total, before := r.SharedLen(), 0
	n := min(most, slice*len(r.shared), total)
	p.at = make([]int, 0, n)
	place := func(i int) int {
		from, to := i*total/n, (i+1)*total/n
		return from + rng.IntN(to-from)
	}
	next := 0
	if n > 0 {
		next = place(0)
	}
	for _, i := range r.shared {
		p.first = append(p.first, len(p.at))
		length := r.slices[i].length
		for len(p.at) < n && next < before+length {
			p.at = append(p.at, next-before)
			p.overall = append(p.overall, r.slices[i].offset+next-before)
			if len(p.at) < n {
				next = place(len(p.at))
			}
		}
		before += length
	}
	p.first = append(p.first, len(p.at))
	return p
}
