package table

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// Batches in memory are a table, of which kinds that others have agreed on are refused.
func TestHeldIsATable(t *testing.T) {
	h := Held(rowsOf(0, []float64{1, 2}, []string{"a", "b"}), rowsOf(2, []float64{3}, []string{""}))
	if s := h.Schema(); !slices.Equal(s.Fields, rowsSchema.Fields) {
		t.Errorf("columns %v", s.Fields)
	}
	rows := 0
	for b, err := range h.Rows(t.Context()) {
		if rows += b.Rows; err != nil {
			t.Error(err)
		}
	}
	if err := h.Pin(rowsSchema); rows != 3 || err != nil {
		t.Errorf("%d rows, %v", rows, err)
	}
	other := &Schema{Fields: []Field{{Name: "n", Kind: Category}, {Name: "c", Kind: Category}}}
	if err, is := errors.AsType[*SchemaError](h.Pin(other)); !is || !strings.Contains(err.Error(), `"n" is a number, not a category`) {
		t.Error(err)
	}
	if none := Held(); none.Schema() != nil || none.Pin(other) != nil {
		t.Error("no batches have columns")
	}
}

// named remembers the names of sums.
type named struct {
	Alone
	names *[]string
}

func (n named) Sum(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	*n.names = append(*n.names, name)
	return n.Alone.Sum(ctx, name, vector)
}

// Two fits over one flock do not meet: each has a scope, and one may be in another.
func TestScope(t *testing.T) {
	var names []string
	outer := Scope(named{names: &names}, "late")
	for _, flock := range []Flock{outer, Scope(outer, "folds"), Scope(named{names: &names}, "early")} {
		if sum, n, err := flock.Sum(t.Context(), "counts", []float64{2}); n != 1 || err != nil || sum[0] != 2 {
			t.Errorf("%v of %d, %v", sum, n, err)
		}
	}
	if want := []string{"late/counts", "late/folds/counts", "early/counts"}; !slices.Equal(names, want) {
		t.Errorf("names %q", names)
	}
	Together(2, func(flock Flock, i int) {
		for _, name := range []string{"a", "b"} {
			most, _, err := Scope(flock, name).Max(t.Context(), "x", []float64{float64(i)})
			all, fault := Scope(flock, name).Gather(t.Context(), "y", []byte{byte(i)})
			if err != nil || fault != nil || most[0] != 1 || len(all) != 2 {
				t.Errorf("%s: %v, %v, %v, %v", name, most, all, err, fault)
			}
		}
	})
}

// Members that differ are told in what, all alike.
func TestAgreeSettings(t *testing.T) {
	Together(2, func(flock Flock, i int) {
		if err := AgreeSettings(t.Context(), flock, "same", map[string]string{"Split": "row:7/10"}); err != nil {
			t.Error(err)
		}
		err := AgreeSettings(t.Context(), flock, "other", map[string]string{"Split": []string{"row:7/10", ""}[i], "Target": "y"})
		if !errors.Is(err, ErrUnlike) || !strings.Contains(err.Error(), `Split is "row:7/10" at one member and "" at another (2 of 2)`) {
			t.Error(err)
		}
	})
}

type shape interface{ sides() int }
type square struct{}
type polygon struct{ n int }

func (square) sides() int     { return 4 }
func (p *polygon) sides() int { return p.n }

// Kinds know values and what points to them; to add one leaves the others as they were.
func TestKinds(t *testing.T) {
	some := Kinds[shape]{"square": func() shape { return new(square) }}
	more := some.With("polygon", func() shape { return new(polygon) })
	if !slices.Equal(some.Names(), []string{"square"}) || !slices.Equal(more.Names(), []string{"polygon", "square"}) {
		t.Errorf("%q, %q", some.Names(), more.Names())
	}
	if more.NameOf(square{}) != "square" || more.NameOf(&square{}) != "square" || more.NameOf(&polygon{3}) != "polygon" || some.NameOf(&polygon{3}) != "" || some.NameOf(nil) != "" {
		t.Error("a kind is not known by its values")
	}
	if none := Kinds[shape](nil).With("square", some["square"]); none.NameOf(square{}) != "square" {
		t.Error("no kinds cannot be added to")
	}
}

// A setting that only one member has is as unlike as one of another value, whoever comes first.
func TestAgreeSettingsThatOneHasNot(t *testing.T) {
	for _, of := range [][]map[string]string{{{"a": "1"}, {"a": "1", "b": "2"}}, {{"a": "1", "b": ""}, {"a": "1"}}, {nil, {"a": "1"}}, {{"a": "1"}, nil}} {
		Together(2, func(flock Flock, i int) {
			if err := AgreeSettings(t.Context(), flock, "settings", of[i]); !errors.Is(err, ErrUnlike) {
				t.Errorf("%v: member %d: %v, want ErrUnlike", of, i, err)
			}
		})
	}
}

// Of a batch that a filter has left no row of, the texts count and no row is told.
func TestHoldTooMuchWithoutRows(t *testing.T) {
	b := &Batch{Keys: []int64{}, Columns: []Column{{Name: "c", Kind: Category, Codes: []int32{}, Values: []string{"a", "b"}}}}
	if _, err := Hold(t.Context(), InMemory(b), 1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
}
