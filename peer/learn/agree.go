package learn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Errors of a fit or an evaluation that all members of the flock return alike, but for the
// one whose rows are at fault: that one says what is wrong with them.
var (
	// ErrUnlike is members that do not fit the same: other columns, classes or settings.
	ErrUnlike = errors.New("learn: members differ in columns, classes or settings; give all the same")
	// ErrMember is rows of another member that cannot be used; its own error says why.
	ErrMember = errors.New("learn: another member's rows cannot be used, its own error says why")
	// ErrNoRows is a flock without one row.
	ErrNoRows = errors.New("learn: no member has rows; check the target, the split and the file")
	// ErrOneClass is a target with one class only.
	ErrOneClass = errors.New("learn: all rows are of one class, nothing can be told apart; check the target")
)

// agree begins what members do together, where one that is stopped by its own rows (local)
// tells the others, who would wait for its sums, and where all compare what must be equal.
func agree(ctx context.Context, flock table.Flock, name string, local error, alike ...any) error {
	content, err := json.Marshal(alike)
	if err != nil && local == nil {
		local = fmt.Errorf("learn: settings: %w", err)
	}
	hash := fnv.New64a()
	hash.Write(content)
	code := float64(hash.Sum64() >> 11) // 53 bits: a float64 has them all
	failed := 0.0
	if local != nil {
		failed = 1
	}
	most, _, err := flock.Max(ctx, name+"/agree", []float64{code, -code, failed})
	switch {
	case local != nil:
		return local
	case err != nil:
		return fmt.Errorf("learn: agreeing on %s: %w", name, err)
	case most[2] != 0:
		return ErrMember
	case most[0] != -most[1]:
		return ErrUnlike
	}
	return nil
}
