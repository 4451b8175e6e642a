package table

import "context"

// Stage is one step of preparing rows. Its exported fields are its settings and what it has
// learned, all of it written by encoding/json: a stage that was read back transforms as the
// one that was fitted. Transform may be called by many goroutines at once after Fit.
type Stage interface {
	// Fit learns from the rows of all members, by sums whose names it chooses: use a separate Scope for each
	// fit over one flock. A member without rows fits too, with a source that gives none.
	Fit(ctx context.Context, flock Flock, rows Source) error
	// Transform makes new columns; columns that it does not change may be shared with the
	// given batch. Rows may be left out.
	Transform(b *Batch) (*Batch, error)
}
