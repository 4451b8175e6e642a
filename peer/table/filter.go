package table

import (
	"context"
	"fmt"
	"iter"
	"slices"
)

// Filter makes a batch of another: fewer rows, or fewer columns. It does not change the given
// batch, and is safe for concurrent use.
type Filter func(*Batch) (*Batch, error)

// Filtered is a source whose batches went through filters, one after the other. Batches
// without rows are skipped.
func Filtered(source Source, filters ...Filter) Source {
	if len(filters) == 0 {
		return source
	}
	return func(ctx context.Context) iter.Seq2[*Batch, error] {
		return func(yield func(*Batch, error) bool) {
			for b, err := range source(ctx) {
				for _, f := range filters {
					if err == nil {
						b, err = f(b)
					}
				}
				if err != nil {
					yield(nil, err)
					return
				}
				if b.Rows > 0 && !yield(b, nil) {
					return
				}
			}
		}
	}
}

// Drop leaves out columns. One that is not there is an error that names it.
func Drop(columns ...string) Filter {
	return func(b *Batch) (*Batch, error) {
		out := *b
		out.Columns = make([]Column, 0, len(b.Columns))
		for _, name := range columns {
			if b.Find(name) == nil {
				return nil, fmt.Errorf("dropping column %q: %w", name, ErrNoColumn)
			}
		}
		for _, c := range b.Columns {
			if !slices.Contains(columns, c.Name) {
				out.Columns = append(out.Columns, c)
			}
		}
		return &out, nil
	}
}
