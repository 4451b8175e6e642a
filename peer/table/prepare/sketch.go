package prepare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// sketchSize is how many numbers a level of a Sketch holds.
const sketchSize = 2048

// Sketch is the distribution of numbers in bounded memory. It answers quantiles and merges with
// others. It has levels of up to 2,048 numbers; each number of level l stands for 2^l numbers. A
// full level is sorted, and every other number of it moves to the next level (Munro and Paterson,
// 1980; Manku, Rajagopalan and Lindsay, 1998). The rank of what Quantile gives is off by at most
// ErrorBound, and is the same wherever the same is added and merged in the same order. The zero
// value holds no numbers.
type Sketch struct {
	Levels [][]float64 `json:"levels"`
	Count  float64     `json:"count"`
	// Compacted counts the times that a level was halved, by level: their parity says which
	// half moves.
	Compacted []uint64 `json:"compacted"`
}

// Add adds numbers, except those that are NaN.
func (s *Sketch) Add(numbers ...float64) {
	for _, x := range numbers {
		if math.IsNaN(x) {
			continue
		}
		s.level(0)
		s.Levels[0] = append(s.Levels[0], x)
		s.Count++
		if len(s.Levels[0]) >= sketchSize {
			s.compact(0)
		}
	}
}

// maxLevels is more than any count of rows needs.
const maxLevels = 64

// UnmarshalJSON reads what encoding/json writes of a sketch; it returns an error if the
// levels do not fit together, as those of a faulty member may.
func (s *Sketch) UnmarshalJSON(data []byte) error {
	type plain Sketch
	var read plain
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	stand := 0.0 // count that the levels stand for; halving a level does not change it
	for l, numbers := range read.Levels {
		stand += math.Ldexp(float64(len(numbers)), l)
	}
	if len(read.Levels) != len(read.Compacted) || len(read.Levels) > maxLevels || read.Count != stand {
		return fmt.Errorf("a sketch of %d levels, %d counts of them and %g numbers: not a sound one", len(read.Levels), len(read.Compacted), read.Count)
	}
	*s = Sketch(read)
	return nil
}

// mergedSketches merges b into a; either may be nil.
func mergedSketches(a, b *Sketch) *Sketch {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	a.Merge(b)
	return a
}

// Merge adds the numbers of o.
func (s *Sketch) Merge(o *Sketch) {
	s.Count += o.Count
	for l, numbers := range o.Levels {
		s.level(l)
		s.Levels[l] = append(s.Levels[l], numbers...)
		s.Compacted[l] += o.Compacted[l]
	}
	for l := 0; l < len(s.Levels); l++ {
		if len(s.Levels[l]) >= sketchSize {
			s.compact(l)
		}
	}
}

// level makes sure that level l exists.
func (s *Sketch) level(l int) {
	for len(s.Levels) <= l {
		s.Levels, s.Compacted = append(s.Levels, nil), append(s.Compacted, 0)
	}
}

// compact halves a level; if its length is odd, the last number stays.
func (s *Sketch) compact(l int) {
	s.level(l + 1)
	numbers := s.Levels[l]
	slices.Sort(numbers)
	var kept []float64
	if len(numbers)%2 == 1 {
		kept = append(kept, numbers[len(numbers)-1])
		numbers = numbers[:len(numbers)-1]
	}
	for i := int(s.Compacted[l] % 2); i < len(numbers); i += 2 {
		s.Levels[l+1] = append(s.Levels[l+1], numbers[i])
	}
	s.Compacted[l]++
	s.Levels[l] = kept
	if len(s.Levels[l+1]) >= sketchSize {
		s.compact(l + 1)
	}
}

// ErrorBound is by how much the rank of a quantile may be off, as a share of the count: each
// halving of a level changes a rank by at most the weight of one of its numbers.
func (s *Sketch) ErrorBound() float64 {
	if s.Count == 0 {
		return 0
	}
	off := 0.0
	for l, n := range s.Compacted {
		off += float64(n) * math.Ldexp(1, l)
	}
	return off / s.Count
}

// mapped is the sketch with do applied to each number. Its error bound doubles if do may map two
// numbers to one.
func (s *Sketch) mapped(do func(float64) float64) *Sketch {
	out := &Sketch{Levels: make([][]float64, len(s.Levels))}
	for l, numbers := range s.Levels {
		for _, x := range numbers {
			out.Levels[l] = append(out.Levels[l], do(x))
		}
	}
	return out
}

// Quantile is the number below which a share q of all numbers lie, NaN if there are none.
func (s *Sketch) Quantile(q float64) float64 {
	return s.Quantiles(q)[0]
}

// Quantiles are the quantiles of ascending shares.
func (s *Sketch) Quantiles(shares ...float64) []float64 {
	type weighted struct{ x, weight float64 }
	var all []weighted
	total := 0.0
	for l, numbers := range s.Levels {
		for _, x := range numbers {
			all = append(all, weighted{x, math.Ldexp(1, l)})
			total += math.Ldexp(1, l)
		}
	}
	slices.SortFunc(all, func(a, b weighted) int { return cmp.Compare(a.x, b.x) })
	found, at, below := make([]float64, len(shares)), 0, 0.0
	for i, q := range shares {
		if len(all) == 0 {
			found[i] = math.NaN()
			continue
		}
		for at < len(all)-1 && below+all[at].weight <= q*total {
			below += all[at].weight
			at++
		}
		found[i] = all[at].x
	}
	return found
}
