package learn

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Errors of a fit or an evaluation that all members of the flock return alike, as they do
// table.ErrMember (but for the member at fault) and table.ErrUnlike.
var (
	// ErrNoRows is a flock without one row.
	ErrNoRows = errors.New("learn: no member has rows; check the target, the split and the file")
	// ErrOneClass: the target has only one class, here or over the flock.
	ErrOneClass = table.ErrOneClass
)

const (
	// maxNumber is the largest feature, target or weight: products of four of them are finite, so that
	// no sum of sound rows is infinite.
	maxNumber = 1e75
	// maxWeight is what all rows weigh together at most.
	maxWeight = 1e100
)

// checkWeights makes sure that sums of weights can be divided by and taken for shares; together they
// are above 0, or there are no rows.
func checkWeights(name string, sums ...float64) error {
	if err := table.Counts(name, maxWeight, sums...); err != nil {
		return fmt.Errorf("learn: %w", err)
	}
	if total(sums) == 0 {
		return ErrNoRows
	}
	return nil
}

// finite says if numbers of a model are not: sums of a member at fault, or values too large.
func finite(numbers ...[]float64) error {
	for _, some := range numbers {
		for _, x := range some {
			if x-x != 0 {
				return fmt.Errorf("learn: the model has %v: a member's sums are at fault, or its numbers too large to add up; scale them first", x)
			}
		}
	}
	return nil
}

// agree begins what members do together: see table.Ready.
func agree(ctx context.Context, flock table.Flock, local error, alike ...any) error {
	err := table.Ready(ctx, flock, "agree", local, alike...)
	if err != nil && err != local {
		return fmt.Errorf("learn: %w", err)
	}
	return err
}
