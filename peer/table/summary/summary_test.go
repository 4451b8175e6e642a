package summary

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

func numbers(name string, values ...float64) table.Column {
	return table.Column{Name: name, Numbers: values}
}

func texts(name string, values ...string) table.Column {
	c := table.Column{Name: name, Kind: table.Category}
	for _, v := range values {
		if v == "" {
			c.Codes = append(c.Codes, table.Missing)
			continue
		}
		at := slices.Index(c.Values, v)
		if at < 0 {
			at, c.Values = len(c.Values), append(c.Values, v)
		}
		c.Codes = append(c.Codes, int32(at))
	}
	return c
}

func batch(columns ...table.Column) *table.Batch {
	return &table.Batch{Columns: columns, Rows: max(len(columns[0].Numbers), len(columns[0].Codes))}
}

// drawn are rows of which columns have to do with each other: x and its noisy copy y, a class z of x, a town that is
// by chance, far away outliers, and what is missing.
func drawn(rows int, seed uint64) *table.Batch {
	rng := rand.New(rand.NewPCG(seed, 1))
	x, y, far, whole, near := make([]float64, rows), make([]float64, rows), make([]float64, rows), make([]float64, rows), make([]float64, rows)
	var z, town []string
	for i := range rows {
		x[i] = rng.NormFloat64()
		y[i] = -3*x[i] + rng.NormFloat64()
		if far[i] = math.Exp(6 * rng.NormFloat64()); i%7 == 0 {
			far[i] = math.NaN()
		}
		whole[i], near[i] = float64(rng.IntN(5000)-2000), 1e9+rng.Float64()
		z = append(z, fmt.Sprint(x[i] > 0.5))
		if town = append(town, fmt.Sprint("town", rng.IntN(30)*rng.IntN(30))); i%11 == 0 {
			town[i] = ""
		}
	}
	return batch(numbers("x", x...), numbers("y", y...), numbers("far", far...), numbers("whole", whole...), numbers("near", near...), texts("z", z...), texts("town", town...))
}

// apart divides rows among members.
func apart(b *table.Batch, members int, of func(row int) int) (all []table.Table) {
	for m := range members {
		all = append(all, table.Held(b.Keep(func(row int) bool { return of(row) == m })))
	}
	return all
}

// tester is of tests, and of draws.
type tester interface {
	Helper()
	Context() context.Context
	Errorf(format string, args ...any)
}

// together describes what members have, and gives what the first is told; all are told the same.
func together(t tester, c Config, rows ...table.Table) (*Summary, error) {
	t.Helper()
	all, errs := make([]*Summary, len(rows)), make([]error, len(rows))
	table.Together(len(rows), func(flock table.Flock, i int) { all[i], errs[i] = c.Describe(t.Context(), flock, rows[i]) })
	for i := range all {
		first, err := json.Marshal(all[0])
		other, errOther := json.Marshal(all[i])
		if string(first) != string(other) || err != nil || errOther != nil || fmt.Sprint(errs[i]) != fmt.Sprint(errs[0]) {
			t.Errorf("member %d is told %s (%v), the first %s (%v)", i, other, errs[i], first, errs[0])
		}
	}
	return all[0], errs[0]
}

// same tells where summaries differ by more than rounding, but for who has the rows.
func same(t testing.TB, got, want *Summary) {
	t.Helper()
	alike := func(what string, a, b float64) {
		if t.Helper(); math.Abs(a-b) > 1e-9*max(1, math.Abs(b)) {
			t.Errorf("%s is %v, want %v", what, a, b)
		}
	}
	if got.Rows != want.Rows || len(got.Columns) != len(want.Columns) || len(got.Correlations) != len(want.Correlations) || !slices.Equal(got.Classes, want.Classes) || got.OtherClasses != want.OtherClasses {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	r := func(s *Summary) map[[2]string]Correlation {
		all := map[[2]string]Correlation{}
		for _, c := range s.Correlations {
			all[c.Columns] = c
		}
		return all
	}
	for columns, c := range r(want) {
		alike(fmt.Sprint("r of ", columns), r(got)[columns].R, c.R)
	}
	for i, b := range want.Columns {
		a := got.Columns[i]
		if a.Name != b.Name || a.Kind != b.Kind || a.Missing != b.Missing || a.Withheld != b.Withheld || (a.Numbers == nil) != (b.Numbers == nil) || (a.Values == nil) != (b.Values == nil) {
			t.Fatalf("got %+v, want %+v", a, b)
		}
		if a.Relation != nil && *a.Relation != *b.Relation { // of counts, which are exact
			t.Errorf("%s: got %+v, want %+v", a.Name, *a.Relation, *b.Relation)
		}
		if a.Values != nil && fmt.Sprint(*a.Values) != fmt.Sprint(*b.Values) {
			t.Errorf("%s: got %+v, want %+v", a.Name, *a.Values, *b.Values)
		}
		if n, m := a.Numbers, b.Numbers; n != nil {
			alike(a.Name+"'s mean", n.Mean, m.Mean)
			alike(a.Name+"'s std", n.Std, m.Std)
			alike(a.Name+"'s skew", n.Skew, m.Skew)
			if n.Min != m.Min || n.Max != m.Max || !slices.Equal(n.Quantiles, m.Quantiles) || fmt.Sprint(n.Histogram) != fmt.Sprint(m.Histogram) {
				t.Errorf("%s: got %+v, want %+v", a.Name, n, m)
			}
		}
	}
}

// However the rows are divided, the description is that of one member with all.
func TestLikeOneMember(t *testing.T) {
	for _, target := range []string{"", "z", "x>0", "y", "town"} {
		b, c := drawn(3000, 7), Config{Target: target}
		want, err := together(t, c, table.Held(b))
		if err != nil {
			t.Fatal(err)
		}
		for members, of := range map[int]func(row int) int{2: func(row int) int { return min(row/5, 1) }, 4: func(row int) int { return row * row % 4 }, 5: func(row int) int { return row % 4 }} {
			rows := apart(b, members, of)
			if rows[members-1].Schema() != nil && members == 5 {
				rows[4] = nil // has no table
			}
			got, err := together(t, c, rows...)
			if err != nil {
				t.Fatal(err)
			}
			if same(t, got, want); got.Members != members || len(got.MemberRows) != members || members == 2 && got.MemberRows[0] != 0 {
				t.Errorf("%d members of %d have %d rows", got.Members, members, got.MemberRows)
			}
		}
	}
}

// A weighted row is as many rows.
func TestWeights(t *testing.T) {
	b := batch(numbers("x", 1, -9, 2, 5, math.NaN()), texts("c", "a", "b", "b", "", "a"), texts("z", "p", "q", "p", "q", "q"), numbers("n", 30, 0, 20, 11, 12))
	var rows []int
	for row, n := range b.Columns[3].Numbers {
		rows = append(rows, slices.Repeat([]int{row}, int(n))...)
	}
	all := &table.Batch{Rows: len(rows)}
	for _, c := range b.Columns {
		c.Numbers, c.Codes = table.PickOf(c.Numbers, rows), table.PickOf(c.Codes, rows)
		all.Columns = append(all.Columns, c)
	}
	want, err := together(t, Config{Drop: []string{"n"}, Target: "z"}, table.Held(all))
	got, errGot := together(t, Config{Weight: "n", Target: "z"}, apart(b, 2, func(row int) int { return row % 2 })...)
	if err != nil || errGot != nil {
		t.Fatal(err, errGot)
	}
	same(t, got, want)
	for _, weight := range []float64{-1, 0.5, math.NaN(), math.Inf(1)} {
		if _, err := together(t, Config{Weight: "n"}, table.Held(batch(numbers("x", 1), numbers("n", weight)))); err == nil || !strings.Contains(err.Error(), "weight") {
			t.Errorf("weight %v: %v", weight, err)
		}
	}
}

// Few rows are not told at all, but that there are some.
func TestFewRowsAreWithheld(t *testing.T) {
	nan := math.NaN()
	s, err := together(t, Config{}, table.Held(batch(numbers("x", 1, 2, nan, nan, nan, nan, nan, nan, nan, nan, nan), numbers("y", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11))), nil)
	if err != nil {
		t.Fatal(err)
	}
	if x := s.Columns[0]; !x.Withheld || x.Numbers != nil || x.Missing != 9 {
		t.Errorf("%+v", x)
	}
	if y := s.Columns[1]; y.Withheld || y.Mean != 6 || len(y.Quantiles) != 0 || len(y.Histogram.Rows) != 1 {
		t.Errorf("%+v", y.Numbers) // no quantile has ten rows on both sides
	}
	var some []float64
	for i := range 19 {
		some = append(some, float64(i))
	}
	for rows, want := range map[int]string{18: "[]", 19: "[{0.5 9 0}]"} {
		if s, err := together(t, Config{}, table.Held(batch(numbers("x", some[:rows]...)))); err != nil || fmt.Sprint(s.Columns[0].Quantiles) != want {
			t.Errorf("%+v, %v", s.Columns[0].Numbers, err)
		}
	}
	if fmt.Sprint(s.MemberRows) != "[11 0]" || len(s.Correlations) != 0 {
		t.Errorf("%v, %v", s.MemberRows, s.Correlations)
	}
}

// Faults are told to all: by the member that has one, what it is.
func TestFaults(t *testing.T) {
	fine := table.Held(batch(numbers("x", 1, 2, 3), texts("c", "a", "b", "a")))
	for want, c := range map[string]Config{
		"Least is -1": {Least: -1}, `column "none" cannot`: {Drop: []string{"none"}}, `column "x" cannot`: {Drop: []string{"x"}, Target: "x>1"},
		`column "c" cannot`: {Weight: "c"}, "names no column": {Target: ">"}, "no such column": {Target: "y"}, "all rows are of one class": {Target: "x>9"},
	} {
		if _, err := together(t, c, fine, fine); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	wrong := table.Held(batch(numbers("x", 1, math.Inf(1)), texts("c", "a", "b")))
	table.Together(2, func(flock table.Flock, i int) {
		_, err := Config{}.Describe(t.Context(), flock, []table.Table{fine, wrong}[i])
		if i == 0 && !errors.Is(err, table.ErrMember) || i == 1 && !strings.Contains(fmt.Sprint(err), `"x" is +Inf in row 1`) {
			t.Errorf("member %d: %v", i, err)
		}
	})
	table.Together(2, func(flock table.Flock, i int) {
		if _, err := (Config{Least: 10 + i}).Describe(t.Context(), flock, fine); !errors.Is(err, table.ErrUnlike) {
			t.Errorf("member %d: %v", i, err)
		}
	})
}
