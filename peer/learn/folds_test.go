package learn

import (
	"math"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

func TestSelectKeepsRowsWhole(t *testing.T) {
	rows := mixedRows(50, 2, 51)
	some := rows.Select(func(row int) bool { return row%3 == 0 })
	if some.count() != 17 || len(some.Target) != 17 || len(some.Weight) != 17 {
		t.Fatalf("%d rows, %d targets, %d weights", some.count(), len(some.Target), len(some.Weight))
	}
	for i := range some.count() {
		if some.Target[i] != rows.Target[3*i] || some.Weight[i] != rows.Weight[3*i] || some.Features.Key(i) != int64(3*i) ||
			some.Features.Columns[1].Numbers[i] != rows.Features.Columns[1].Numbers[3*i] {
			t.Errorf("row %d is not row %d of all", i, 3*i)
		}
	}
}

// Each row is held out once; folds are the same however rows are spread over members.
func TestCrossValidationHoldsEachRowOutOnce(t *testing.T) {
	rows := mixedRows(300, 2, 52)
	folds, err := table.ParseFolds("fold:4")
	if err != nil {
		t.Fatal(err)
	}
	alone, err := CrossValidate(t.Context(), table.Alone{}, &Logistic{}, rows, folds)
	if err != nil || len(alone) != 4 {
		t.Fatalf("%d scores, %v", len(alone), err)
	}
	seen := 0.0
	for _, s := range alone {
		seen += s.Classes.Rows
		if s.Classes.Rows < 75 || s.Classes.AUC < 0.6 {
			t.Errorf("%+v; want an area above 0.6 over some rows", s.Classes)
		}
	}
	if all := total(rows.Weight); seen != all {
		t.Errorf("rows of weight %v were held out; want each once, %v", seen, all)
	}
	parts, three := threeParts(rows), make([][]Scores, 3)
	table.Together(3, func(flock table.Flock, i int) {
		three[i], _ = CrossValidate(t.Context(), table.Scope(flock, "cv"), &Logistic{}, parts[i], folds)
	})
	for i := range three {
		if len(three[i]) != len(folds) {
			t.Fatalf("member %d has %d scores", i, len(three[i]))
		}
		for f := range folds {
			a, b := alone[f].Classes, three[i][f].Classes
			if b.Rows != a.Rows || math.Abs(a.AUC-b.AUC) > 1e-3 || b.AUC != three[0][f].Classes.AUC || b.Peers != 3 {
				t.Errorf("fold %d: %+v at member %d, %+v alone", f, b, i, a)
			}
		}
	}
	byColumn, _ := table.ParseFolds("fold:nowhere:4")
	_, err = CrossValidate(t.Context(), table.Alone{}, &Logistic{}, rows, byColumn)
	wantError(t, err, `"nowhere"`)
}

// The held-out rows are not among those that train.
func TestDivideSeparates(t *testing.T) {
	rows := mixedRows(100, 2, 53)
	split, err := table.ParseSplit("row:7/10")
	if err != nil {
		t.Fatal(err)
	}
	train, test, err := divide(rows, split)
	if err != nil || train.count() != 70 || test.count() != 30 || len(train.Features.Columns) != len(rows.Features.Columns) {
		t.Fatalf("%d train, %d are held out, %v", train.count(), test.count(), err)
	}
	if slices.ContainsFunc(test.Features.Keys, func(key int64) bool { return key%10 < 7 }) {
		t.Errorf("held out: %v", test.Features.Keys)
	}
}
