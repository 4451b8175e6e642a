package table

import (
	"slices"
	"testing"
)

func TestConcatNumbersValuesAlike(t *testing.T) {
	a := &Batch{Rows: 2, First: 5, Columns: []Column{
		{Name: "x", Numbers: []float64{1, 2}},
		{Name: "c", Kind: Category, Codes: []int32{1, Missing}, Values: []string{"red", "blue"}},
	}}
	b := &Batch{Rows: 2, Keys: []int64{9, 12}, Columns: []Column{
		{Name: "x", Numbers: []float64{3, 4}},
		{Name: "c", Kind: Category, Codes: []int32{0, 1}, Values: []string{"blue", "green"}},
	}}
	all, err := Concat(a, &Batch{Columns: []Column{{Name: "x"}, {Name: "c", Kind: Category}}}, b)
	if err != nil {
		t.Fatal(err)
	}
	c := all.Columns[1]
	if all.Rows != 4 || !slices.Equal(all.Columns[0].Numbers, []float64{1, 2, 3, 4}) || !slices.Equal(all.Keys, []int64{5, 6, 9, 12}) {
		t.Errorf("%+v", all)
	}
	if c.Values[c.Codes[0]] != "blue" || c.Codes[1] != Missing || c.Codes[2] != c.Codes[0] || c.Values[c.Codes[3]] != "green" {
		t.Errorf("codes %v of %q", c.Codes, c.Values)
	}
	if _, err := Concat(a, &Batch{Columns: b.Columns[:1]}); err == nil {
		t.Error("batches of other columns were put together")
	}
	if _, err := Concat(); err == nil {
		t.Error("nothing was put together")
	}
}
