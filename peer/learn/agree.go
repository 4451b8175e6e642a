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
	// ErrOneClass is a target with one class only.
	ErrOneClass = errors.New("learn: all rows are of one class, nothing can be told apart; check the target")
)

// agree begins what members do together: see table.Ready.
func agree(ctx context.Context, flock table.Flock, name string, local error, alike ...any) error {
	err := table.Ready(ctx, flock, name+"/agree", local, alike...)
	if err != nil && err != local {
		return fmt.Errorf("learn: %w", err)
	}
	return err
}
