package learn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// fitTogether fits a learner at members with rows of their own, and returns each one's model.
func fitTogether(t *testing.T, learner Learner, parts []Rows) ([]Model, []error) {
	t.Helper()
	models, errs := make([]Model, len(parts)), make([]error, len(parts))
	table.Together(len(parts), func(flock table.Flock, i int) {
		models[i], errs[i] = learner.Fit(t.Context(), table.Scope(flock, "fit"), parts[i])
	})
	return models, errs
}

// fitBoth fits a learner at one process with all rows and at members with a part each, and
// returns both models; those of all members are of the same bytes, and survive a file.
func fitBoth(t *testing.T, learner Learner, rows Rows, parts ...Rows) (alone, together Model) {
	t.Helper()
	alone, err := learner.Fit(t.Context(), table.Alone{}, rows)
	if err != nil {
		t.Fatal(err)
	}
	models, errs := fitTogether(t, learner, parts)
	for i, m := range models {
		if errs[i] != nil {
			t.Fatalf("member %d: %v", i, errs[i])
		}
		if a, ok := m.(*ALSModel); ok {
			models[i] = a.Shared()
		}
		first, _ := json.Marshal(models[0])
		if this, _ := json.Marshal(models[i]); !bytes.Equal(first, this) {
			t.Fatalf("members 0 and %d have models of other bytes:\n%s\n%s", i, first, this)
		}
	}
	var file bytes.Buffer
	if err := Save(&file, File{Model: alone}); err != nil {
		t.Fatal(err)
	}
	read, err := Load(&file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := alone.Predict(nil, rows.Features)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read.Model.Predict(nil, rows.Features); err != nil || !slices.Equal(got, want) {
		t.Fatalf("a model from a file predicts otherwise (%v)", err)
	}
	if len(want) != alone.Outputs()*rows.Features.Rows {
		t.Fatalf("%d predictions for %d rows of %d outputs", len(want), rows.Features.Rows, alone.Outputs())
	}
	return alone, models[0]
}

// numbersBatch has columns c0, c1 and so on.
func numbersBatch(rows [][]float64) *table.Batch {
	b := &table.Batch{Rows: len(rows)}
	for j := range rows[0] {
		c := table.Column{Name: fmt.Sprintf("c%d", j)}
		for _, row := range rows {
			c.Numbers = append(c.Numbers, row[j])
		}
		b.Columns = append(b.Columns, c)
	}
	return b
}

// part are the rows that choose says, with their keys.
func part(r Rows, choose func(row int) bool) Rows {
	of := Rows{Features: &table.Batch{Columns: slices.Clone(r.Features.Columns), Keys: []int64{}}, Classes: r.Classes}
	for j := range of.Features.Columns {
		c := &of.Features.Columns[j]
		c.Numbers, c.Codes = nil, nil
	}
	for row := range r.Features.Rows {
		if !choose(row) {
			continue
		}
		of.Features.Rows++
		of.Features.Keys = append(of.Features.Keys, r.Features.Key(row))
		for j, c := range r.Features.Columns {
			into := &of.Features.Columns[j]
			if c.Kind == table.Number {
				into.Numbers = append(into.Numbers, c.Numbers[row])
			} else {
				into.Codes = append(into.Codes, c.Codes[row])
			}
		}
		if r.Target != nil {
			of.Target = append(of.Target, r.Target[row])
		}
		if r.Weight != nil {
			of.Weight = append(of.Weight, r.Weight[row])
		}
	}
	return of
}

// close1 tells whether numbers are alike to a tolerance, relative to the larger or to 1.
func close1(a, b, tolerance float64) bool {
	return math.Abs(a-b) <= tolerance*max(1, math.Abs(a), math.Abs(b))
}

func sameFloats(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !close1(got[i], want[i], tolerance) {
			t.Fatalf("%s: %v at %d, want %v", what, got[i], i, want[i])
		}
	}
}
