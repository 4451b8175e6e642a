package table

import (
	"context"
	"iter"
	"slices"
)

// Flock is what fitting asks of the members of a run: *peer.Peer is one, and Alone. All
// members that take part call the same methods with the same names in the same order; each
// gets the same bytes. A name is used once in a run of sums. Vectors are of one length at all
// members; what is handed in is not changed, what is returned is the caller's. After an error
// (a context that ended, too few members left) nothing has been summed.
type Flock interface {
	// Sum adds up what all bring, place by place, and tells how many took part.
	Sum(ctx context.Context, name string, vector []float64) (sum []float64, peers int, err error)
	// Max is the largest of what all bring, place by place. The least is that of what is
	// negated. No place may be NaN.
	Max(ctx context.Context, name string, vector []float64) (largest []float64, peers int, err error)
	// Gather hands every member what each brings, in one order: for sketches, which are
	// merged by all alike, and for lists of names. It moves as many bytes as all bring.
	Gather(ctx context.Context, name string, data []byte) (all [][]byte, err error)
}

// Alone is a flock of one process.
type Alone struct{}

// Sum returns a copy of the vector.
func (Alone) Sum(ctx context.Context, _ string, vector []float64) ([]float64, int, error) {
	return slices.Clone(vector), 1, ctx.Err()
}

// Max returns a copy of the vector.
func (Alone) Max(ctx context.Context, _ string, vector []float64) ([]float64, int, error) {
	return slices.Clone(vector), 1, ctx.Err()
}

// Gather returns a copy of the data.
func (Alone) Gather(ctx context.Context, _ string, data []byte) ([][]byte, error) {
	return [][]byte{slices.Clone(data)}, ctx.Err()
}

// Source gives the rows of one member, from the first, each time that it is called: rows are
// gone over several times. It ends with the first error. All batches have the same columns.
type Source func(ctx context.Context) iter.Seq2[*Batch, error]

// InMemory gives batches that are held already.
func InMemory(batches ...*Batch) Source {
	return func(ctx context.Context) iter.Seq2[*Batch, error] {
		return func(yield func(*Batch, error) bool) {
			for _, b := range batches {
				if err := ctx.Err(); err != nil {
					yield(nil, err)
					return
				}
				if !yield(b, nil) {
					return
				}
			}
		}
	}
}
