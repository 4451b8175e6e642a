package learn

import (
	"context"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Rows are what a learner is fitted on and predicts for: features, as a pipeline has prepared
// them, all in memory. A learner that wants numbers only says which column is none.
type Rows struct {
	// Features are all rows in one batch. A member may have none, but has the columns.
	Features *table.Batch
	// Target has a value for each row: a number; the class, from 0, where classes are
	// learned. Nil to predict, and for learners without one (k-means, PCA).
	Target []float64
	// Classes are the names of the classes, nil if Target is a number.
	Classes []string
	// Weight has the weight of each row; nil is 1 each.
	Weight []float64
}

// Learner fits a model. Its exported fields are its settings; the zero value is useful.
type Learner interface {
	// Fit makes a model of the rows of all members, the same at each, by sums whose names it chooses: of two fits
	// over one flock, each has a table.Scope.
	Fit(ctx context.Context, flock table.Flock, rows Rows) (Model, error)
}

// Model predicts. It is written and read by encoding/json (see Save and Load), and safe for
// concurrent use once fitted.
type Model interface {
	// Outputs is how many numbers Predict gives for a row: 1 for a number, the number of
	// classes for probabilities that add up to 1, 1 for a cluster's index, and the
	// number of components for PCA.
	Outputs() int
	// Predict appends Outputs numbers for each row to dst, row after row. Features are columns
	// by name; one that the model knows and that is not there is an error that names it.
	Predict(dst []float64, features *table.Batch) ([]float64, error)
}
