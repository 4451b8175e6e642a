package summary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// ErrUnsteady: members have died on the way, and again whenever the description was begun anew.
var ErrUnsteady = errors.New("other members take part than before")

const atOnce = 1 << 20 // numbers of a sum

// sums are the numbers of a pass that are to be added up over all members. Sums of other members than the first ones
// are an error, at all alike: what is told of a column are several sums of the same rows.
type sums struct {
	flock              table.Flock
	members            int
	counts, sums, ends [][]float64
}

func (s *sums) counted(n int) []float64 { return room(&s.counts, n) }
func (s *sums) summed(n int) []float64  { return room(&s.sums, n) }

func room(in *[][]float64, n int) []float64 {
	v := make([]float64, n)
	*in = append(*in, v)
	return v
}

// add has the sums of all members, and the largest of ends, be in the place of this one's numbers.
func (s *sums) add(ctx context.Context, name string) error {
	for i, vectors := range [][][]float64{s.counts, s.sums, s.ends} {
		do, all := s.flock.Sum, slices.Concat(vectors...)
		if i == 2 {
			do = s.flock.Max
		}
		for from := 0; from < len(all); from += atOnce {
			part := all[from:min(from+atOnce, len(all))]
			sum, members, err := do(ctx, fmt.Sprintf("%s/%d/%d", name, i, from), part)
			if s.members = cmp.Or(s.members, members); err == nil && members != s.members {
				err = ErrUnsteady
			}
			if err == nil && i == 0 {
				err = table.Counts(name, table.MaxCount, sum...)
			}
			for j := range sum {
				if err == nil && i == 0 && sum[j] < part[j] {
					err = fmt.Errorf("%w: a count of all, %g, is below this member's own, %g", table.ErrSum, sum[j], part[j])
				}
			}
			if err != nil {
				return fmt.Errorf("adding up %s: %w", name, err)
			}
			copy(part, sum)
		}
		for _, v := range vectors {
			all = all[copy(v, all):]
		}
	}
	s.counts, s.sums, s.ends = nil, nil, nil
	return nil
}
