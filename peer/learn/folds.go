package learn

import (
	"context"
	"fmt"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Select returns the rows for which keep returns true. If these are all rows, the result shares memory with r.
func (r Rows) Select(keep func(row int) bool) Rows {
	rows := []int{}
	for i := range r.count() {
		if keep(i) {
			rows = append(rows, i)
		}
	}
	if r.Features != nil {
		r.Features = r.Features.Pick(rows)
	}
	r.Target, r.Weight = table.PickOf(r.Target, rows), table.PickOf(r.Weight, rows)
	return r
}

// CrossValidate fits once for each fold (table.ParseFolds) on the training rows, and scores the model on the rows
// held out. The preparation of the rows has seen all of them, including those held out. A fold by a column's value
// needs that column among the features.
func CrossValidate(ctx context.Context, flock table.Flock, learner Learner, rows Rows, folds []table.Split) ([]Scores, error) {
	var scores []Scores
	for f, fold := range folds {
		flock := table.Scope(flock, fmt.Sprint("fold", f+1))
		train, test, local := divide(rows, fold)
		if err := agree(ctx, flock, local, len(folds)); err != nil {
			return nil, err
		}
		var s Scores
		model, err := learner.Fit(ctx, table.Scope(flock, "fit"), train)
		if err == nil {
			s, err = Evaluate(ctx, table.Scope(flock, "scores"), model, test)
		}
		if err != nil {
			return nil, fmt.Errorf("learn: fold %d of %d: %w", f+1, len(folds), err)
		}
		scores = append(scores, s)
	}
	return scores, nil
}

// divide returns the training rows and the held-out rows of a split.
func divide(rows Rows, split table.Split) (train, test Rows, err error) {
	if rows.Features == nil {
		return train, test, errNoFeatures
	}
	// A split returns batches: an extra column with the rows' places shows which rows it has chosen.
	const places = "\x00place"
	b := *rows.Features
	b.Columns = append(b.Columns[:len(b.Columns):len(b.Columns)], table.Column{Name: places, Numbers: make([]float64, b.Rows)})
	column := b.Find(places)
	for i := range column.Numbers {
		column.Numbers[i] = float64(i)
	}
	held, err := split.Test()(&b)
	if err != nil {
		return train, test, fmt.Errorf("learn: dividing rows: %w", err)
	}
	out := make([]bool, b.Rows)
	for _, place := range held.Find(places).Numbers {
		out[int(place)] = true
	}
	return rows.Select(func(row int) bool { return !out[row] }), rows.Select(func(row int) bool { return out[row] }), nil
}
