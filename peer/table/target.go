package table

import (
	"context"
	"errors"
)

// Target is what a learner is to predict. ParseTarget makes one: a column's name alone (a
// number, or its classes if it is a Category), or a comparison that is true or not
// ("arr_delay>15", ">=", "<", "<=", "carrier=UA", "carrier!=UA").
type Target struct {
	Column string `json:"column"`
	// Op is "", ">", ">=", "<", "<=", "=" or "!=".
	Op    string `json:"op,omitempty"`
	Value string `json:"value,omitempty"`
}

// ParseTarget reads a target.
func ParseTarget(text string) (Target, error) { return Target{}, errNotYet }

// Fit looks at the target of all rows of all members and agrees on the classes. All members
// call it with the schema agreed, those without rows too. A target that has one class only
// in the whole flock, or no value at all, is a *TargetError.
func (t Target) Fit(ctx context.Context, flock Flock, name string, schema *Schema, rows Source) (*Labels, error) {
	return nil, errNotYet
}

// Labels gives the target of rows. It is written and read by encoding/json, and safe for
// concurrent use.
type Labels struct {
	Target Target `json:"target"`
	// Classes are the names of the classes, sorted; of a comparison two, what is not so and
	// what is. Nil if the target is a number.
	Classes []string `json:"classes,omitempty"`
	// Rows and Missing count, over the flock, rows with and without a target.
	Rows    int64 `json:"rows"`
	Missing int64 `json:"missing"`
	// Counts are the rows of each class over the flock.
	Counts []int64 `json:"counts,omitempty"`
}

// Of takes the target out of a batch: the rest of the columns, of the rows that have a target,
// and its value for each of these rows: a number, or the class's place in Classes. The rows
// left out are b.Rows less those of what is returned.
func (l *Labels) Of(b *Batch) (features *Batch, target []float64, err error) {
	return nil, nil, errNotYet
}

var errNotYet = errors.New("not built yet")
