package summary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// ErrUnsteady: members have died during the description, and again in each new attempt.
var ErrUnsteady = errors.New("other members take part than before")

const atOnce = 1 << 20 // numbers of a sum

// sums are the numbers of a pass to be added up over all members. If the members of a sum differ from those of the
// first, it is an error that all get: the sums of a column must be over the same rows.
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

// add replaces this member's numbers by the sums of all members, and ends by the largest of all.
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
