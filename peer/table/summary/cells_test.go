package summary

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
	"pgregory.net/rapid"
)

// Values are counted as a map counts them; those with few rows are told to nobody, whatever member has them.
func TestValuesBelowTheFloor(t *testing.T) {
	var town []string
	want := map[string]int64{}
	for i, n := range []int{40, 30, 10, 9, 3, 1} { // the last three are 13: more than the floor
		name := fmt.Sprint("town", i)
		for range n {
			town = append(town, name)
		}
		want[name] = int64(n)
	}
	var seen []string
	tables := apart(batch(texts("town", town...)), 3, func(row int) int { return row % 3 })
	table.Together(3, func(flock table.Flock, i int) {
		if i == 0 {
			flock = listening{flock, &seen}
		}
		s, err := Config{}.Describe(t.Context(), flock, tables[i])
		if err != nil {
			t.Error(err)
			return
		}
		v := s.Columns[0].Values
		if fmt.Sprint(v.Top) != "[{town0 40} {town1 30} {town2 10}]" || v.Others != 13 || v.Distinct != 6 {
			t.Errorf("%+v", v)
		}
	})
	if all := strings.Join(seen, " "); strings.Contains(all, "town3") || strings.Contains(all, "town5") || !strings.Contains(all, "town2") {
		t.Errorf("a member sees %s", all)
	}
	s, err := together(t, Config{Least: 1}, tables...)
	if err != nil || s.Columns[0].Others != 0 || len(s.Columns[0].Top) != 6 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, c := range s.Columns[0].Top {
		if want[c.Value] != c.Rows {
			t.Errorf("%+v, want %d", c, want[c.Value])
		}
	}
}

// listening keeps the blocks that a member is given.
type listening struct {
	table.Flock
	seen *[]string
}

func (l listening) Gather(ctx context.Context, name string, data []byte) ([][]byte, error) {
	all, err := l.Flock.Gather(ctx, name, data)
	for _, block := range all {
		*l.seen = append(*l.seen, string(block))
	}
	return all, err
}

// asking is a flock of a member that claims to have a value of its guess in its first category.
type asking struct{ table.Flock }

func (a asking) Gather(ctx context.Context, name string, data []byte) ([][]byte, error) {
	if strings.HasSuffix(name, "values") {
		data = []byte(`[["someone"]]`)
	}
	return a.Flock.Gather(ctx, name, data)
}

// A member that guesses a value of few rows is not told how many others have it.
func TestNobodyAsksForAValue(t *testing.T) {
	rows := table.Held(batch(texts("name", append(slices.Repeat([]string{"anyone"}, 20), "someone")...)))
	table.Together(2, func(flock table.Flock, i int) {
		if i == 1 {
			flock = asking{flock}
		}
		s, err := Config{}.Describe(t.Context(), flock, rows)
		if !errors.Is(err, table.ErrSum) || !strings.Contains(fmt.Sprint(err), "member 2 of 2") {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// No cell that is told has fewer rows than the floor, nor has what is left of all when those that are told are
// taken away.
func TestFloorOfCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least, total := rapid.Int64Range(1, 12).Draw(t, "least"), int64(0)
		var cells []Cell
		edges, rows := []float64{0}, []float64{}
		for i, n := range rapid.SliceOfN(rapid.Int64Range(0, 25), 1, 20).Draw(t, "rows") {
			cells, total = append(cells, Cell{fmt.Sprint(i), n}), total+n
			edges, rows = append(edges, float64(i+1)), append(rows, float64(n))
		}
		kept, others := told(cells, total, rapid.IntRange(0, 20).Draw(t, "most"), float64(least))
		all := others
		for _, c := range kept {
			if all += c.Rows; c.Rows < least {
				t.Fatalf("%v of %v", kept, cells)
			}
		}
		if all != total || others > 0 && others < least && len(kept) > 0 {
			t.Fatalf("%v and %d others of %v", kept, others, cells)
		}
		if total < least {
			return
		}
		h, all := histogram(edges, rows, float64(least)), int64(0)
		for _, n := range h.Rows {
			if all += n; n > 0 && n < least {
				t.Fatalf("%+v of %v", h, rows)
			}
		}
		if all != total || len(h.Edges) != len(h.Rows)+1 || h.Edges[0] != 0 || h.Edges[len(h.Rows)] != edges[len(rows)] || !slices.IsSorted(h.Edges) {
			t.Fatalf("%+v of %v", h, rows)
		}
	})
}
