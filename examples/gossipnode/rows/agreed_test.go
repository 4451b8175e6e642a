package rows

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/table"
)

// counting is a flock whose sums are so many.
type counting struct {
	table.Flock
	rows float64
}

func (c counting) Sum(context.Context, string, []float64) ([]float64, int, error) {
	return []float64{c.rows}, 2, nil
}

// A number of rows that no members have is nobody's result.
func TestRowsThatNobodyHas(t *testing.T) {
	for _, rows := range []float64{math.NaN(), math.Inf(1), -3, 1e300} {
		a := &Agreed{Flock: counting{table.Alone{}, rows}}
		if _, _, err := a.Trains(t.Context(), Examples{}); !errors.Is(err, table.ErrSum) {
			t.Errorf("%g rows: %v", rows, err)
		}
	}
}

// A target of numbers is of classes where classes are wanted and no member adds a third; one that a
// member has infinite is one of them.
func TestTargetOfTwoNumbersOverTheFlock(t *testing.T) {
	for _, c := range []struct {
		values  [2][]float64
		classes int
	}{
		{[2][]float64{{0, 0}, {1, math.NaN()}}, 2},
		{[2][]float64{{0, 1}, {1, 2}}, 0},
		{[2][]float64{{0, 1}, {0, math.Inf(1)}}, 0},
	} {
		table.Together(2, func(flock table.Flock, i int) {
			b := &table.Batch{Rows: 2, Columns: []table.Column{{Name: "y", Numbers: c.values[i]}}}
			a := &Agreed{Table: settings.Table{Target: "y"}, Flock: flock, Schema: &table.Schema{Fields: []table.Field{{Name: "y"}}}, Rows: table.InMemory(b)}
			if err := a.LearnTarget(t.Context(), true); err != nil || len(a.Labels.Classes) != c.classes || a.Target.Classes != (c.classes > 0) {
				t.Errorf("%v: %v, %+v", c.values, err, a.Labels)
			}
		})
	}
}
