package learn

import (
	"context"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Rows are the rows on which a learner is fitted and for which a model predicts: features, as prepared by a
// pipeline, all in memory. A learner that takes only numbers returns an error that names any other column.
type Rows struct {
	// Features are all rows in one batch. A member may have no rows, but must have the columns.
	Features *table.Batch
	// Target has a value for each row: a number, or, for classes, the class from 0. It is
	// nil for prediction, and for learners without a target (k-means, PCA).
	Target []float64
	// Classes are the names of the classes, nil if Target is a number.
	Classes []string
	// Weight has the weight of each row; nil is 1 each.
	Weight []float64
}

// Learner fits a model. Its exported fields are its settings; the zero value is useful.
type Learner interface {
	// Fit makes a model of the rows of all members, the same at each, by sums whose names it chooses: use a
	// separate table.Scope for each fit over one flock.
	Fit(ctx context.Context, flock table.Flock, rows Rows) (Model, error)
}

// Model predicts. It is written and read by encoding/json (see Save and Load), and safe for
// concurrent use once fitted.
type Model interface {
	// Outputs is how many numbers Predict gives for a row: 1 for a number, the number of
	// classes for probabilities that add up to 1, 1 for a cluster's index, and the
	// number of components for PCA.
	Outputs() int
	// Predict appends Outputs numbers for each row to dst, row after row. Features are found
	// by name; a missing column of the model is an error that names it.
	Predict(dst []float64, features *table.Batch) ([]float64, error)
}
