package learn

import (
	"cmp"
	"slices"

	"github.com/seed-97356399/murmuration/internal/kernel"
)

// laneBins is how many bins a lane has at most: the number of one is a byte. With more, lanes are fewer and take longer.
const laneBins = 256

// together is to how many lanes kernel.AddCells adds a row at once.
const together = 4

// lane is some columns whose bins have one number: a row is added to all of them at once, and the sums of each column are those
// over the combinations that it is in. They are whole, so nothing is rounded. (LightGBM bundles columns that are hardly ever
// away from their usual value at the same time; here it is columns of few values.)
type lane struct {
	columns []int32
	bins    int
	of      [][]uint8 // for each column its bin, by the lane's
}

// lanesOf divides columns into lanes, as few as come of trying the largest columns first.
func lanesOf(columns []binColumn) (lanes []lane) {
	order := make([]int32, len(columns))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(columns[b].bins, columns[a].bins) })
	for _, c := range order {
		at := slices.IndexFunc(lanes, func(l lane) bool { return l.bins*columns[c].bins <= laneBins })
		if at < 0 {
			at, lanes = len(lanes), append(lanes, lane{bins: 1})
		}
		lanes[at].add(c, columns[c].bins)
	}
	return lanes
}

// add adds a column: all bins of before come once for each of its own.
func (l *lane) add(c int32, bins int) {
	for k, of := range l.of {
		l.of[k] = slices.Repeat(of, bins)
	}
	var of []uint8
	for bin := range bins {
		of = append(of, slices.Repeat([]uint8{uint8(bin)}, l.bins)...)
	}
	l.columns, l.of, l.bins = append(l.columns, c), append(l.of, of), l.bins*bins
}

// laneSums are the sums of a node: rows are added to all columns at once.
type laneSums struct {
	lanes []lane
	bins  []uint32 // of the rows, one after another: a number has those of `together` lanes, the first in the lowest byte
	sums  [][laneBins]cell
	to    [][together]*[laneBins]cell
}

func newLaneSums(b *binned) *laneSums {
	s := &laneSums{lanes: lanesOf(b.columns)}
	s.to = make([][together]*[laneBins]cell, (len(s.lanes)+together-1)/together)
	s.sums = make([][laneBins]cell, len(s.to)*together)
	s.bins = make([]uint32, len(s.to)*b.rows)
	for i := range s.sums {
		s.to[i/together][i%together] = &s.sums[i]
	}
	for i, l := range s.lanes {
		one := uint32(1) << (i % together * 8)
		for _, c := range l.columns {
			for row, bin := range b.bins[c] {
				s.bins[row*len(s.to)+i/together] += uint32(bin) * one
			}
			one *= uint32(b.columns[c].bins)
		}
	}
	return s
}

// add adds some rows, of which cells has what each adds.
func (s *laneSums) add(rows []int32, cells []cell) {
	for i := range s.to {
		kernel.AddCells(&s.to[i], s.bins[i:], len(s.to), rows, cells)
	}
}

// drain adds the sums to those of the columns, whose first bins are at the given places, and begins anew.
func (s *laneSums) drain(cells []cell, at []int32) {
	for i, l := range s.lanes {
		sums := s.sums[i][:l.bins]
		for bin, sum := range sums {
			if sum.HN == 0 {
				continue // no row
			}
			for k, c := range l.columns {
				to := &cells[at[c]+int32(l.of[k][bin])]
				to.G += sum.G
				to.HN += sum.HN
			}
		}
		clear(sums)
	}
}
