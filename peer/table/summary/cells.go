package summary

import (
	"cmp"
	"slices"
)

// told returns the cells with the most rows, at most most of them and none below the floor; others are the rows of
// the rest. If the rest is below the floor, the least cell joins it, since the rest follows from the total.
func told(cells []Cell, total int64, most int, least float64) (kept []Cell, others int64) {
	kept = slices.Clone(cells)
	slices.SortStableFunc(kept, func(a, b Cell) int { return cmp.Compare(b.Rows, a.Rows) })
	for others = total; len(kept) > 0 && (len(kept) > most || kept[len(kept)-1].Rows < int64(least)); {
		kept = kept[:len(kept)-1]
	}
	for _, c := range kept {
		others -= c.Rows
	}
	for ; others > 0 && others < int64(least) && len(kept) > 0; kept = kept[:len(kept)-1] {
		others += kept[len(kept)-1].Rows
	}
	return kept, others
}

// histogram merges bins until none has fewer rows than the floor, except empty bins; all rows together are enough.
func histogram(edges, rows []float64, least float64) (h Histogram) {
	h.Edges = []float64{edges[0]}
	within := 0.0
	for i, n := range rows {
		if within += n; within == 0 || within >= least {
			h.Edges, h.Rows, within = append(h.Edges, edges[i+1]), append(h.Rows, int64(within)), 0
		}
	}
	for within > 0 { // the rest joins the last bin that has rows
		last := len(h.Rows) - 1
		if within += float64(h.Rows[last]); h.Rows[last] > 0 {
			h.Edges, h.Rows[last], within = append(h.Edges[:last+1], edges[len(rows)]), int64(within), 0
			continue
		}
		h.Rows = h.Rows[:last]
	}
	return h
}
