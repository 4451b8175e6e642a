package replica

import (
	"math/rand/v2"
	"slices"

	"github.com/seed-97356399/murmuration/tensor"
)

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

// learned are those places whose values have gradients: statistics have none.
func (p places) learned(layout *tensor.Layout) (left places) {
	ranges := layout.Ranges()
	statistic := func(at int) bool {
		return slices.ContainsFunc(ranges, func(r tensor.Range) bool {
			return r.Kind == tensor.Statistic && r.Offset <= at && at < r.Offset+r.Len
		})
	}
	for shared := range len(p.first) - 1 {
		left.first = append(left.first, len(left.at))
		for i := p.first[shared]; i < p.first[shared+1]; i++ {
			if !statistic(p.overall[i]) {
				left.at, left.overall = append(left.at, p.at[i]), append(left.overall, p.overall[i])
			}
		}
	}
	left.first = append(left.first, len(left.at))
	return left
}
