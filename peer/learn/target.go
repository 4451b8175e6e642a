package learn

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// count is the number of rows.
func (r Rows) count() int {
	if r.Features == nil {
		return len(r.Target)
	}
	return r.Features.Rows
}

// key is the number of a row in its source.
func (r Rows) key(row int) int64 {
	if r.Features == nil {
		return int64(row)
	}
	return r.Features.Key(row)
}

// weight is the weight of a row.
func (r Rows) weight(row int) float64 {
	if r.Weight == nil {
		return 1
	}
	return r.Weight[row]
}

// checkRowWeights returns an error if weights of rows are invalid.
func checkRowWeights(r Rows) error {
	if r.Weight != nil && len(r.Weight) != r.count() {
		return fmt.Errorf("learn: %d weights for %d rows", len(r.Weight), r.count())
	}
	if i := slices.IndexFunc(r.Weight, func(w float64) bool { return !(w >= 0 && w <= maxNumber) }); i >= 0 {
		return fmt.Errorf("learn: the weight of row %d is %v; want a number from 0 to %g", r.key(i), r.Weight[i], maxNumber)
	}
	return nil
}

// checkTarget returns an error if targets or weights are invalid.
func checkTarget(r Rows) error {
	if len(r.Target) != r.count() {
		return fmt.Errorf("learn: %d targets for %d rows", len(r.Target), r.count())
	}
	if err := checkRowWeights(r); err != nil {
		return err
	}
	for i, y := range r.Target {
		if r.Classes == nil && (math.IsNaN(y) || math.Abs(y) > maxNumber) {
			return fmt.Errorf("learn: the target of row %d is %v; leave rows without a target out, and scale what is beyond %g", r.key(i), y, maxNumber)
		}
		if r.Classes != nil && !(y >= 0 && y < float64(len(r.Classes)) && y == math.Trunc(y)) {
			return fmt.Errorf("learn: the target of row %d is %v; want a class from 0 to %d", r.key(i), y, len(r.Classes)-1)
		}
	}
	return nil
}

// wantClasses returns an error unless the target has classes.
func wantClasses(r Rows) error {
	if len(r.Classes) == 0 {
		return errors.New("learn: the target is a number, this learner wants classes; compare it with a limit")
	}
	return nil
}

// wantTwo returns an error if all rows of the flock, counted by class, are of one class.
func wantTwo(classes []string, counts []float64) error {
	most := floats.MaxIdx(counts)
	for c, n := range counts {
		if n > 0 && c != most {
			return nil
		}
	}
	return fmt.Errorf("learn: %w, %q; check the target", ErrOneClass, classes[most])
}
