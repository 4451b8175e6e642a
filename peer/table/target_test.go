package table

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]Target{
		"arr_delay>15":      {"arr_delay", ">", "15", false},
		" arr_delay >= -1 ": {"arr_delay", ">=", "-1", false},
		"a<1e3":             {"a", "<", "1e3", false},
		"a<=0":              {"a", "<=", "0", false},
		"carrier=UA":        {"carrier", "=", "UA", false},
		"carrier==UA":       {"carrier", "=", "UA", false},
		"carrier!=U A":      {"carrier", "!=", "U A", false},
		"carrier":           {"carrier", "", "", false},
	} {
		if got, err := ParseTarget(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for text, names := range map[string]string{
		"":           "names no column",
		">15":        "names no column",
		"a>":         "with nothing",
		"a!":         "with nothing",
		"a=>5":       "with nothing",
		"a>x":        `"x", which is no number`,
		"a<NaN":      "no number",
		"a < b >= 3": "no number",
	} {
		if got, err := ParseTarget(text); err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

var nan = math.NaN()

func TestTarget(t *testing.T) {
	members := []*Batch{
		rowsOf(0, []float64{10, 20, nan, 15}, []string{"x", "y", "", "x"}),
		rowsOf(0, nil, nil),
		rowsOf(0, []float64{16}, []string{"z"}),
	}
	for _, c := range []struct {
		target  string
		classes []string
		counts  []int64
		values  [][]float64
	}{
		{"n", nil, nil, [][]float64{{10, 20, 15}, {}, {16}}},
		{"n>15", []string{"n<=15", "n>15"}, []int64{2, 2}, [][]float64{{0, 1, 0}, {}, {1}}},
		{"n>=15", []string{"n<15", "n>=15"}, []int64{1, 3}, [][]float64{{0, 1, 1}, {}, {1}}},
		{"n<15", []string{"n>=15", "n<15"}, []int64{3, 1}, [][]float64{{1, 0, 0}, {}, {0}}},
		{"n=16", []string{"n!=16", "n=16"}, []int64{3, 1}, [][]float64{{0, 0, 0}, {}, {1}}},
		{"c", []string{"x", "y", "z"}, []int64{2, 1, 1}, [][]float64{{0, 1, 0}, {}, {2}}},
		{"c=z", []string{"c!=z", "c=z"}, []int64{3, 1}, [][]float64{{0, 0, 0}, {}, {1}}},
		{"c!=z", []string{"c=z", "c!=z"}, []int64{1, 3}, [][]float64{{1, 1, 1}, {}, {0}}},
	} {
		t.Run(c.target, func(t *testing.T) {
			target, err := ParseTarget(c.target)
			if err != nil {
				t.Fatal(err)
			}
			Together(3, func(f Flock, i int) {
				l, err := target.Fit(context.Background(), Scope(f, "target"), rowsSchema, InMemory(members[i]))
				if err != nil {
					t.Error(err)
					return
				}
				if !slices.Equal(l.Classes, c.classes) || !slices.Equal(l.Counts, c.counts) || l.Rows != 4 || l.Missing != 1 {
					t.Errorf("%+v", l)
				}
				data, _ := json.Marshal(l)
				var back Labels
				if err := json.Unmarshal(data, &back); err != nil {
					t.Error(err)
				}
				features, values, err := back.Of(members[i])
				if err != nil || !slices.Equal(values, c.values[i]) || features.Rows != len(values) {
					t.Errorf("member %d: %v, %v", i, values, err)
				}
				if features.Find(target.Column) != nil || len(features.Columns) != 1 {
					t.Errorf("the target is among the features: %+v", features.Columns)
				}
				if i == 0 && features.Key(2) != 3 {
					t.Errorf("the key of the last row is %d, not 3", features.Key(2))
				}
			})
		})
	}
}

// What one member lacks another may have; what all lack is an error at all.
func TestTargetThatCannotBeLearned(t *testing.T) {
	many := rowsOf(0, nil, nil)
	for i := range MaxClasses + 1 {
		many.Columns[1].Values = append(many.Columns[1].Values, fmt.Sprint(i))
		many.Columns[1].Codes = append(many.Columns[1].Codes, int32(i+1))
		many.Columns[0].Numbers = append(many.Columns[0].Numbers, nan)
		many.Rows++
	}
	half := func(from, to int) *Batch { // of many
		b := many.Keep(func(row int) bool { return row >= from && row < to })
		return b
	}
	for _, c := range []struct {
		target  string
		members []*Batch
		want    error
		names   string
	}{
		{"n>15", []*Batch{rowsOf(0, []float64{1}, []string{"x"}), rowsOf(0, []float64{2}, []string{"x"})}, ErrOneClass, `"n<=15" (all 2 rows`},
		{"n>15", []*Batch{rowsOf(0, []float64{1}, []string{"x"}), rowsOf(0, []float64{20}, []string{"x"})}, nil, ""},
		{"c=UA", []*Batch{rowsOf(0, []float64{1}, []string{"x"})}, ErrOneClass, `"c!=UA"`},
		{"c", []*Batch{rowsOf(0, []float64{1}, []string{"x"}), rowsOf(0, []float64{2}, []string{"x"})}, ErrOneClass, `"x"`},
		{"n", []*Batch{rowsOf(0, []float64{nan, nan}, []string{"x", "y"}), rowsOf(0, nil, nil)}, ErrNoTarget, `column "n" is missing in all 2 rows`},
		{"c", []*Batch{rowsOf(0, []float64{1}, []string{""})}, ErrNoTarget, `column "c"`},
		{"late", []*Batch{rowsOf(0, nil, nil)}, ErrNoColumn, `"late": the table has no such column (it has n, c)`},
		{"c>3", []*Batch{rowsOf(0, nil, nil)}, ErrTargetKind, `"c" is a category`},
		{"n=x", []*Batch{rowsOf(0, nil, nil)}, ErrTargetKind, `"x" is none`},
		{"c", []*Batch{half(0, 600), half(500, MaxClasses+1)}, ErrTooManyClasses, "1001, at most 1000"},
		{"c", []*Batch{half(0, 600), half(500, MaxClasses)}, nil, ""},
	} {
		t.Run(c.target, func(t *testing.T) {
			target, err := ParseTarget(c.target)
			if err != nil {
				t.Fatal(err)
			}
			Together(len(c.members), func(f Flock, i int) {
				_, err := target.Fit(context.Background(), Scope(f, "target"), rowsSchema, InMemory(c.members[i]))
				if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.names) {
					t.Errorf("member %d: %v, want %v that names %s", i, err, c.want, c.names)
				}
				var e *TargetError
				if err != nil && (!errors.As(err, &e) || e.Target != target) {
					t.Errorf("member %d: no TargetError: %v", i, err)
				}
			})
		})
	}
}

// A member whose rows cannot be read tells the others, and one with another target too.
func TestTargetOfAMemberAtFault(t *testing.T) {
	torn := errors.New("torn")
	for _, target := range []string{"n", "c"} {
		Together(2, func(f Flock, i int) {
			rows, want := InMemory(rowsOf(0, []float64{1, 2}, []string{"x", "y"})), ErrMember
			if i == 1 {
				rows, want = func(context.Context) iter.Seq2[*Batch, error] {
					return func(yield func(*Batch, error) bool) { yield(nil, torn) }
				}, torn
			}
			if _, err := (Target{Column: target}).Fit(context.Background(), Scope(f, "target"), rowsSchema, rows); !errors.Is(err, want) {
				t.Errorf("member %d: %v", i, err)
			}
		})
	}
	Together(2, func(f Flock, i int) {
		rows := InMemory(rowsOf(0, []float64{1, 2}, []string{"x", "y"}))
		if _, err := (Target{Column: []string{"n", "c"}[i]}).Fit(context.Background(), Scope(f, "target"), rowsSchema, rows); !errors.Is(err, ErrUnlike) {
			t.Errorf("member %d: %v", i, err)
		}
	})
}

func TestLabelsOfOtherRows(t *testing.T) {
	target := Target{Column: "c"}
	l, err := target.Fit(context.Background(), Alone{}, rowsSchema, InMemory(rowsOf(0, []float64{1, 2}, []string{"x", "y"})))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = l.Of(rowsOf(7, []float64{1, 2}, []string{"x", "new"}))
	if err == nil || !strings.Contains(err.Error(), `column "c" of row 8 is "new"`) {
		t.Errorf("a class that was not there: %v", err)
	}
	if _, _, err = l.Of(&Batch{}); !errors.Is(err, ErrNoColumn) {
		t.Errorf("no column: %v", err)
	}
}
