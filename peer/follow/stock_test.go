package follow

import (
	"slices"
	"testing"
)

// TestRowsStayAsOldAsTheyAre when others are dropped: what was held out goes on being so for as long as it was to be, and what was not
// is trained on next. Were all drawn anew, old rows would be held out as if they were the newest, and come back when their labels have
// long been others.
func TestRowsStayAsOldAsTheyAre(t *testing.T) {
	const all, old, classes = 400, 350, 2
	class := func(row int) int { return row % classes }
	right := func(rows []int) (is []bool) { // old rows of class 0 are known, and no others are
		for _, row := range rows {
			is = append(is, row < old && class(row) == 0)
		}
		return is
	}
	s := newStock[int](all, 1)
	for row := range all {
		s.came++
		s.add(row)
		s.release()
		if row < old {
			s.kept.Add(row)
		}
	}
	left := func(rows []int) []int {
		return slices.DeleteFunc(slices.Clone(rows), func(row int) bool { return right([]int{row})[0] })
	}
	fresh, held, waiting := left(s.fresh), left(s.held), len(s.fresh)+len(s.held)
	dropped := s.dropContradicted(right, class)
	if !slices.Equal(s.fresh, fresh) || !slices.Equal(s.held, held) || len(s.gone) != waiting-len(fresh)-len(held) || dropped != len(s.gone)+old/classes {
		t.Errorf("dropped %d: %v are new, and %v held out, want %v and %v", dropped, s.fresh, s.held, fresh, held)
	}
	for i, row := range s.held {
		if s.since[i] != row+1 {
			t.Errorf("row %d counts as having come as number %d", row, s.since[i])
		}
	}
}
