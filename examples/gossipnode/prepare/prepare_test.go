package prepare

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// rows are a number far from 0 that is missing once, a constant, and a category with one rare
// value.
func rows() *table.Batch {
	return &table.Batch{Rows: 5, Columns: []table.Column{
		{Name: "x", Numbers: []float64{1e9 + 1, 1e9 + 2, math.NaN(), 1e9 + 3, 1e9 + 6}},
		{Name: "same", Numbers: []float64{4, 4, 4, 4, 4}},
		{Name: "c", Kind: table.Category, Codes: []int32{1, 1, 0, 1, table.Missing}, Values: []string{"rare", "often"}},
	}}
}

// fitted has been fitted and has gone through a file.
func fitted(t *testing.T, what For) *Stage {
	t.Helper()
	s := New(what, 2, rows())
	if err := s.Fit(t.Context(), table.Alone{}, "p", table.InMemory(rows())); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var read Stage
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	return &read
}

func numbersOf(t *testing.T, b *table.Batch, name string) []float64 {
	t.Helper()
	c := b.Find(name)
	if c == nil {
		t.Fatalf("there is no column %q", name)
	}
	return c.Numbers
}

func TestNumbers(t *testing.T) {
	b, err := fitted(t, Numbers).Transform(rows())
	if err != nil {
		t.Fatal(err)
	}
	x := numbersOf(t, b, "x")
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum, squares = sum+v, squares+v*v
	}
	if math.Abs(sum) > 1e-9 || math.Abs(squares/5-1) > 1e-9 || x[2] != 0 {
		t.Errorf("%v: want mean 0 and variance 1, with the mean for what is missing", x)
	}
	for name, want := range map[string][]float64{
		"x missing": {0, 0, 1, 0, 0}, "same": {0, 0, 0, 0, 0}, "c=often": {1, 1, 0, 1, 0}, "c=(other)": {0, 0, 1, 0, 0},
	} {
		if got := numbersOf(t, b, name); !slices.Equal(got, want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if len(b.Columns) != 5 {
		t.Errorf("%d columns, want 5", len(b.Columns))
	}
}

func TestCounts(t *testing.T) {
	b, err := fitted(t, Counts).Transform(rows())
	if err != nil {
		t.Fatal(err)
	}
	if x := numbersOf(t, b, "x"); !slices.Equal(x, []float64{0, 0.2, 0.4, 0.4, 1}) {
		t.Errorf("%v: want 0 to 1", x)
	}
}

func TestTrees(t *testing.T) {
	b, err := fitted(t, Trees).Transform(rows())
	if err != nil {
		t.Fatal(err)
	}
	if x := numbersOf(t, b, "x"); !math.IsNaN(x[2]) || x[0] != 1e9+1 {
		t.Errorf("%v: want it as it was", x)
	}
	c := b.Find("c")
	if !slices.Equal(c.Values, []string{"often", other}) || !slices.Equal(c.Codes, []int32{0, 0, 1, 0, table.Missing}) {
		t.Errorf("%v of %q", c.Codes, c.Values)
	}
}

func TestPrepareSaysWhatIsWrong(t *testing.T) {
	none := rows()
	none.Columns[0].Numbers = []float64{math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()}
	if err := New(Numbers, 1, none).Fit(t.Context(), table.Alone{}, "p", table.InMemory(none)); err == nil || !strings.Contains(err.Error(), `"x" has no value`) {
		t.Errorf("%v; want it to name the column", err)
	}
	other := rows()
	other.Columns[1] = table.Column{Name: "same", Kind: table.Category, Codes: make([]int32, 5), Values: []string{"4"}}
	if _, err := fitted(t, Numbers).Transform(other); err == nil || !strings.Contains(err.Error(), `"same" is a category`) {
		t.Errorf("%v; want it to name the column", err)
	}
	if err := json.Unmarshal([]byte(`{"for":"birds","columns":[]}`), new(Stage)); err == nil {
		t.Error("a stage for nobody was read")
	}
}
