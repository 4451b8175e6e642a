package prepare

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/internal/flocktest"
	"github.com/seed-97356399/murmuration/peer/table"
)

func sample() *table.Batch {
	return batch(numbers("x", 1e9, 1e9+1./3, math.NaN(), -7, 0.1), numbers("y", 0, 1, 0, 1, 1),
		texts("c", "b", "", "a", "b", "late again"), texts("d", "p", "q", "p", "q", "p"))
}

// Whatever the flock gives, every stage ends with an error, or can be written and read and transforms or says why not.
func TestStagesOverAFlockWithAMemberAtFault(t *testing.T) {
	fresh := func() []table.Stage {
		return []table.Stage{
			&Standardize{}, &MinMax{}, &Impute{Indicator: true}, &Impute{By: Median}, &Impute{By: MostFrequent}, &Bins{Count: 4}, &Outliers{},
			&Outliers{By: MedianDeviation, Remove: true}, &OneHot{Floor: 2}, &Codes{}, &Buckets{Count: 4}, &NGrams{Count: 4}, &DropUseless{Target: "y"},
		}
	}
	for i := range fresh() {
		flocktest.Each(table.Alone{}, 100, func(s *flocktest.Spoilt) {
			stage := fresh()[i]
			what := func() string { return fmt.Sprintf("%T, %q %s", stage, s.Name, s.How.Name) }
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("%s: panic: %v", what(), r)
				}
			}()
			p := Pipeline{Stages: []table.Stage{stage}}
			for _, c := range sample().Columns {
				p.Input.Fields = append(p.Input.Fields, table.Field{Name: c.Name, Kind: c.Kind})
			}
			err := p.Fit(t.Context(), s, "f", table.InMemory(sample()))
			if s.Call < 0 && err != nil {
				t.Error(what(), err)
			}
			if s.Number && s.How.Name == "NaN" && !errors.Is(err, table.ErrSum) {
				t.Errorf("%s: %v", what(), err)
			}
			if err != nil {
				return
			}
			data, err := json.Marshal(p)
			if err != nil {
				t.Fatalf("%s: %v", what(), err)
			}
			var again Pipeline
			if err := json.Unmarshal(data, &again); err != nil {
				t.Errorf("%s: %v of %s", what(), err, data)
			}
			p.Transform(sample())
		})
	}
}

func TestRowsOverAFlockWithAMemberAtFault(t *testing.T) {
	flocktest.Each(table.Alone{}, 100, func(s *flocktest.Spoilt) {
		defer func() {
			if r := recover(); r != nil {
				t.Errorf("%q %s: panic: %v", s.Name, s.How.Name, r)
			}
		}()
		keep, _, err := Distinct(t.Context(), s, "d", table.InMemory(sample()))
		if err == nil {
			_, err = keep(sample())
		}
		rows, errShare := Share(t.Context(), s, "s", batch(numbers("x", 1, 2, 3), numbers("y", 4, 5, 6)), Sharing{Bytes: 16})
		if s.Call < 0 && errors.Join(err, errShare) != nil || errShare == nil && rows.Rows > 3 {
			t.Errorf("%q %s: %v, %v", s.Name, s.How.Name, err, errShare)
		}
	})
}
