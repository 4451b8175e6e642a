package flocktest_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/summary"
)

// Whatever the flock gives, a description ends with an error, or can be written and has no cell below its floor.
func TestDescriptionOverAFlockWithAMemberAtFault(t *testing.T) {
	rows := sample()
	rows.Columns = append(rows.Columns, numbers("n", 3, 40, 2, 11, 30))
	for _, c := range []summary.Config{{}, {Target: "d", Weight: "n"}, {Target: "y", Least: 1}, {Target: "x>1", Least: 2}, {Target: "x", Least: 1, Drop: []string{"c"}}} {
		everyCall(table.Alone{}, 100, func(s *spoilt) {
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("%+v, %q %s: panic: %v", c, s.Name, s.How.Name, r)
				}
			}()
			told, err := c.Describe(t.Context(), s, table.Held(rows))
			if s.Call < 0 && err != nil || s.Number && s.How.Name == "NaN" && !errors.Is(err, table.ErrSum) {
				t.Errorf("%+v, %q %s: %v", c, s.Name, s.How.Name, err)
			}
			if err != nil {
				return
			}
			if _, err := json.Marshal(told); err != nil {
				t.Errorf("%+v, %q %s: %v", c, s.Name, s.How.Name, err)
			}
			cells := told.Classes
			for _, column := range told.Columns {
				if column.Values != nil {
					cells = append(cells, column.Top...)
				}
			}
			for _, cell := range cells {
				if cell.Rows < int64(told.Least) {
					t.Errorf("%+v, %q %s: %+v", c, s.Name, s.How.Name, cell)
				}
			}
		})
	}
}
