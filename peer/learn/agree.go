package learn

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Errors of a fit or an evaluation that all members of the flock return alike. So is table.ErrUnlike, and
// table.ErrMember except at the member at fault.
var (
	// ErrNoRows: no member of the flock has a row.
	ErrNoRows = errors.New("learn: no member has rows; check the target, the split and the file")
	// ErrOneClass: the target has only one class, at this member or over the flock.
	ErrOneClass = table.ErrOneClass
	// ErrSettings: the rows cannot be fitted with these settings of the learner; with others they may. So it is with
	// ErrSingular.
	ErrSettings = errors.New("learn: the rows cannot be fitted with these settings")
)

const (
	// maxNumber bounds the size of a feature, target or weight: a product of four such numbers is finite, so that
	// sums over valid rows never become infinite.
	maxNumber = 1e75
	// maxWeight bounds the total weight of all rows.
	maxWeight = 1e100
)

// checkWeights makes sure that sums of weights are valid and that their total is above 0. It returns ErrNoRows if the
// total is 0.
func checkWeights(name string, sums ...float64) error {
	if err := table.Counts(name, maxWeight, sums...); err != nil {
		return fmt.Errorf("learn: %w", err)
	}
	if total(sums) == 0 {
		return ErrNoRows
	}
	return nil
}

// checkFinite returns an error if a number of the model is infinite or NaN. The cause is either a faulty sum of a member
// or values that are too large.
func checkFinite(numbers ...[]float64) error {
	for _, some := range numbers {
		if i := slices.IndexFunc(some, missing); i >= 0 {
			return fmt.Errorf("learn: the model has %v: a member's sums are at fault, or its numbers too large to add up; scale them first", some[i])
		}
	}
	return nil
}

// agree is the first thing that all members do together: see table.Ready.
func agree(ctx context.Context, flock table.Flock, local error, alike ...any) error {
	err := table.Ready(ctx, flock, "agree", local, alike...)
	if err != nil && err != local {
		return fmt.Errorf("learn: %w", err)
	}
	return err
}
