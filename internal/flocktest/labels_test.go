package flocktest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Whatever the flock gives, labels and schemas end in an error or in counts that can be.
func TestLabelsOverAFlockWithAMemberAtFault(t *testing.T) {
	b := &table.Batch{Rows: 6, Columns: []table.Column{
		{Name: "x", Numbers: []float64{1, 2, 3, 4, 5, 6}},
		{Name: "c", Kind: table.Category, Codes: []int32{0, 1, 2, 0, -1, 1}, Values: []string{"p", "q", "r"}},
	}}
	schema := &table.Schema{Fields: []table.Field{{Name: "x"}, {Name: "c", Kind: table.Category}}}
	for _, text := range []string{"x", "x>3", "c", "c=q"} {
		target, err := table.ParseTarget(text)
		if err != nil {
			t.Fatal(err)
		}
		everyCall(table.Alone{}, 100, func(s *spoilt) {
			labels, err := target.Fit(t.Context(), table.Scope(s, "t"), schema, table.InMemory(b))
			agreed, errSchema := table.Agree(t.Context(), table.Scope(s, "s"), schema)
			if s.Call < 0 && errors.Join(err, errSchema) != nil {
				t.Error(err, errSchema)
			}
			if err == nil {
				sum := int64(0)
				for _, n := range labels.Counts {
					sum += n
				}
				if labels.Rows <= 0 || labels.Missing < 0 || labels.Classes != nil && sum != labels.Rows {
					t.Errorf("%s, %q %s: %+v", text, s.Name, s.How.Name, labels)
				}
			}
			if _, err := json.Marshal(agreed); err != nil {
				t.Error(err)
			}
			if s.Number && s.How.Number != nil && fmt.Sprint(s.How.Number(1)) == "NaN" && !errors.Is(err, table.ErrSum) {
				t.Errorf("%s, %q %s: %v", text, s.Name, s.How.Name, err)
			}
		})
	}
}
