package flocktest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

func sample() *table.Batch {
	return batch(numbers("x", 1e9, 1e9+1./3, math.NaN(), -7, 0.1), numbers("y", 0, 1, 0, 1, 1),
		texts("c", "b", "", "a", "b", "late again"), texts("d", "p", "q", "p", "q", "p"))
}

// Whatever the flock gives, every stage ends with an error, or can be written and read and transforms or says why not.
func TestStagesOverAFlockWithAMemberAtFault(t *testing.T) {
	fresh := func() []table.Stage {
		return []table.Stage{
			&prepare.Standardize{}, &prepare.MinMax{}, &prepare.Impute{Indicator: true}, &prepare.Impute{By: prepare.Median}, &prepare.Impute{By: prepare.MostFrequent}, &prepare.Bins{Count: 4}, &prepare.Outliers{},
			&prepare.Outliers{By: prepare.MedianDeviation, Remove: true}, &prepare.OneHot{Floor: 2}, &prepare.Codes{}, &prepare.Buckets{Count: 4}, &prepare.NGrams{Count: 4}, &prepare.DropUseless{Target: "y"}, &prepare.Dates{Columns: map[string]bool{"d": true}}, &prepare.Dates{}, &prepare.DropMany{Values: 2},
		}
	}
	for i := range fresh() {
		everyCall(table.Alone{}, 100, func(s *spoilt) {
			stage := fresh()[i]
			what := func() string { return fmt.Sprintf("%T, %q %s", stage, s.Name, s.How.Name) }
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("%s: panic: %v", what(), r)
				}
			}()
			p := prepare.Pipeline{Stages: []table.Stage{stage}}
			for _, c := range sample().Columns {
				p.Input.Fields = append(p.Input.Fields, table.Field{Name: c.Name, Kind: c.Kind})
			}
			err := p.Fit(t.Context(), table.Scope(s, "f"), table.InMemory(sample()))
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
			var again prepare.Pipeline
			if err := json.Unmarshal(data, &again); err != nil {
				t.Errorf("%s: %v of %s", what(), err, data)
			}
			p.Transform(sample())
		})
	}
}

func TestRowsOverAFlockWithAMemberAtFault(t *testing.T) {
	everyCall(table.Alone{}, 100, func(s *spoilt) {
		defer func() {
			if r := recover(); r != nil {
				t.Errorf("%q %s: panic: %v", s.Name, s.How.Name, r)
			}
		}()
		keep, _, err := prepare.Distinct(t.Context(), table.Scope(s, "d"), table.InMemory(sample()))
		if err == nil {
			_, err = keep(sample())
		}
		rows, errShare := prepare.Share(t.Context(), table.Scope(s, "s"), batch(numbers("x", 1, 2, 3), numbers("y", 4, 5, 6)), prepare.Sharing{Bytes: 16})
		if s.Call < 0 && errors.Join(err, errShare) != nil || errShare == nil && rows.Rows > 3 {
			t.Errorf("%q %s: %v, %v", s.Name, s.How.Name, err, errShare)
		}
	})
}

// TestMutatedPipelines shows that a pipeline with a good checksum whose numbers are nonsense is refused or
// transforms, within its bounds.
func TestMutatedPipelines(t *testing.T) {
	file, err := os.ReadFile("../../peer/table/prepare/testdata/pipeline-1")
	if err != nil {
		t.Fatal(err)
	}
	_, content, _ := bytes.Cut(file, []byte("\n"))
	all, err := mutated(content)
	if err != nil {
		t.Fatal(err)
	}
	dates, err := mutated([]byte(`{"version":1,"input":{"fields":[{"name":"note","kind":"category"}]},"stages":[{"kind":"dates","stage":{"columns":{"note":true}}}]}`))
	if err != nil { // which yesterday's has none of
		t.Fatal(err)
	}
	all = append(all, dates...)
	refused, yesterday := 0, batch(numbers("age", 20, math.NaN()), numbers("size", 1, 600), numbers("flat", 7, 7), numbers("y", 0, 5),
		texts("city", "Oslo", "b=c"), texts("grade", "A", ""), texts("note", "late again", "on time"), texts("tail", "N1", "N2"))
	for _, data := range all {
		func() {
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("panic: %v, of %s", r, data)
				}
			}()
			var p prepare.Pipeline
			if err := json.Unmarshal(data, &p); err != nil {
				if refused++; !errors.Is(err, prepare.ErrPipeline) {
					t.Errorf("%v, of %s", err, data)
				}
				return
			}
			if out, err := p.Transform(yesterday); err == nil && len(out.Columns) > prepare.MaxValues+1 {
				t.Errorf("%d columns, of %s", len(out.Columns), data)
			}
		}()
	}
	if t.Logf("%d of %d refused", refused, len(all)); refused < len(all)/3 {
		t.Errorf("%d of %d refused", refused, len(all))
	}
}

func numbers(name string, values ...float64) table.Column {
	return table.Column{Name: name, Numbers: values}
}

func texts(name string, values ...string) table.Column {
	c := table.Column{Name: name, Kind: table.Category, Values: slices.Compact(slices.Sorted(slices.Values(values)))}
	for _, v := range values {
		c.Codes = append(c.Codes, int32(slices.Index(c.Values, v)))
	}
	return c
}

func batch(columns ...table.Column) *table.Batch {
	return &table.Batch{Columns: columns, Rows: max(len(columns[0].Numbers), len(columns[0].Codes))}
}
