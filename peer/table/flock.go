package table

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Flock is what fitting asks of the members of a run: *peer.Peer is one, and Alone; Together makes
// one for tests. All members that take part call the same methods with the same names in the same
// order; each gets the same bytes. A name is used once in a run of sums: see Scope. Vectors are of one length at
// all members; what is handed in is not changed, what is returned is the caller's. After an error (a
// context that ended, too few members left) nothing has been summed.
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

// ErrSum is a sum, a maximum or a list of blocks that sound members do not make; the error names it.
var ErrSum = errors.New("what members brought together is not sound: one of them is at fault")

// MaxCount is the most that a sum of counts may be: a float64 has all whole numbers up to it.
const MaxCount = 1 << 53

// Counts makes sure that sums of what is never negative, of rows or weights, are from 0 to most,
// before one becomes a length, an index or a share.
func Counts(name string, most float64, sums ...float64) error {
	for i, x := range sums {
		if !(x >= 0 && x <= most) {
			return fmt.Errorf("%w: number %d of %q is %g, want 0 to %g", ErrSum, i+1, name, x, most)
		}
	}
	return nil
}

// Careful is a flock whose sums are as long as what was brought and finite, whose maxima are not
// below that, and whose blocks are one at least; else ErrSum.
func Careful(flock Flock) Flock {
	switch flock.(type) {
	case careful, scope:
		return flock
	}
	return careful{flock}
}

type careful struct{ Flock }

func (c careful) Sum(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	sum, peers, err := c.Flock.Sum(ctx, name, vector)
	return sum, peers, cmp.Or(err, sound(name, sum, vector, false))
}

func (c careful) Max(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	most, peers, err := c.Flock.Max(ctx, name, vector)
	return most, peers, cmp.Or(err, sound(name, most, vector, true))
}

func sound(name string, sum, brought []float64, most bool) error {
	if len(sum) != len(brought) {
		return fmt.Errorf("%w: %q has %d numbers, want %d", ErrSum, name, len(sum), len(brought))
	}
	for i, x := range sum {
		if x-x != 0 || most && x < brought[i] {
			return fmt.Errorf("%w: number %d of %q is %g", ErrSum, i+1, name, x)
		}
	}
	return nil
}

func (c careful) Gather(ctx context.Context, name string, data []byte) ([][]byte, error) {
	all, err := c.Flock.Gather(ctx, name, data)
	if err == nil && len(all) == 0 {
		return nil, fmt.Errorf("%w: %q has no blocks", ErrSum, name)
	}
	return all, err
}

// GatherJSON is Gather of values that encoding/json writes and reads; ErrSum if it does not read one.
func GatherJSON[T any](ctx context.Context, flock Flock, name string, own T) ([]T, error) {
	data, err := json.Marshal(own)
	if err != nil {
		return nil, fmt.Errorf("writing what %q gathers: %w", name, err)
	}
	brought, err := flock.Gather(ctx, name, data)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(brought))
	for i, data := range brought {
		if err := json.Unmarshal(data, &all[i]); err != nil {
			return nil, fmt.Errorf("%w: reading what member %d of %d brings to %q: %w", ErrSum, i+1, len(all), name, err)
		}
	}
	return all, nil
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

// Scope is a Careful flock in which all names begin with one more: what is fitted twice over one flock, or by two
// rooms of a service, has sums of different names.
func Scope(flock Flock, name string) Flock { return scope{Careful(flock), name + "/"} }

type scope struct {
	flock  Flock
	prefix string
}

func (s scope) Sum(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	return s.flock.Sum(ctx, s.prefix+name, vector)
}

func (s scope) Max(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	return s.flock.Max(ctx, s.prefix+name, vector)
}

func (s scope) Gather(ctx context.Context, name string, data []byte) ([][]byte, error) {
	return s.flock.Gather(ctx, s.prefix+name, data)
}
