package learn

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Fold puts a row into one of folds parts by a hash of its key, alike at all members and in
// every run of a seed. Fold(key, seed, 10) < 7 is a split of 70 to 30.
func Fold(key int64, seed uint64, folds int) int {
	// The finalizer of splitmix64: neighbouring keys go anywhere.
	z := uint64(key) + (seed+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	high, _ := bits.Mul64(z^z>>31, uint64(max(folds, 1)))
	return int(high)
}

// Select is the rows that keep says yes to, copied.
func (r Rows) Select(keep func(row int) bool) Rows {
	var rows []int
	for i := range r.count() {
		if keep(i) {
			rows = append(rows, i)
		}
	}
	chosen := Rows{Classes: r.Classes, Target: pick(r.Target, rows), Weight: pick(r.Weight, rows)}
	if r.Features == nil {
		return chosen
	}
	b := &table.Batch{Rows: len(rows), First: r.Features.First, Keys: make([]int64, len(rows))}
	for i, row := range rows {
		b.Keys[i] = r.Features.Key(row)
	}
	for _, c := range r.Features.Columns {
		c.Numbers, c.Codes = pick(c.Numbers, rows), pick(c.Codes, rows)
		b.Columns = append(b.Columns, c)
	}
	chosen.Features = b
	return chosen
}

// pick is the values of some rows; nil stays nil.
func pick[T any](values []T, rows []int) []T {
	if values == nil {
		return nil
	}
	picked := make([]T, len(rows))
	for i, row := range rows {
		picked[i] = values[row]
	}
	return picked
}

// CrossValidate fits once for each fold, without its rows, and scores the model on them. The
// folds are by the rows' keys (Fold). What prepared the rows has seen all of them.
func CrossValidate(ctx context.Context, flock table.Flock, name string, learner Learner, rows Rows, folds int, seed uint64) ([]Scores, error) {
	if folds < 2 {
		return nil, fmt.Errorf("learn: cross-validation with %d folds: want 2 or more", folds)
	}
	if rows.Features == nil {
		return nil, fmt.Errorf("learn: cross-validation: %w", errNoFeatures)
	}
	fold := make([]int, rows.count())
	for i := range fold {
		fold[i] = Fold(rows.Features.Key(i), seed, folds)
	}
	var scores []Scores
	for f := range folds {
		part := fmt.Sprintf("%s/fold%d", name, f)
		model, err := learner.Fit(ctx, flock, part, rows.Select(func(row int) bool { return fold[row] != f }))
		if err != nil {
			return nil, fmt.Errorf("learn: fold %d of %d: %w", f+1, folds, err)
		}
		s, err := Evaluate(ctx, flock, part+"/scores", model, rows.Select(func(row int) bool { return fold[row] == f }))
		if err != nil {
			return nil, fmt.Errorf("learn: fold %d of %d: %w", f+1, folds, err)
		}
		scores = append(scores, s)
	}
	return scores, nil
}
