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

// Flock is the sums over the members of a run that fitting needs. *peer.Peer and Alone implement it; Together
// makes one for tests. All members that take part call the same methods with the same names in the same order;
// each gets the same bytes. A name is used once in a run of sums: see Scope. Vectors have the same length at
// all members. Arguments are not changed; results belong to the caller. After an error (a context that ended,
// too few members left) there is no sum.
type Flock interface {
	// Sum adds up the vectors of all members, element by element, and returns how many took part.
	Sum(ctx context.Context, name string, vector []float64) (sum []float64, peers int, err error)
	// Max is the largest value of all members, element by element. For the smallest, negate
	// before and after. No element may be NaN.
	Max(ctx context.Context, name string, vector []float64) (largest []float64, peers int, err error)
	// Gather gives every member the data of all, in the same order: for sketches, which all
	// members merge alike, and for lists of names. It moves as many bytes as all bring.
	Gather(ctx context.Context, name string, data []byte) (all [][]byte, err error)
}

// ErrSum: a sum, a maximum or a list of blocks cannot be right; the error names it.
var ErrSum = errors.New("what members brought together is not sound: one of them is at fault")

// ErrNumbers: numbers of a column, which the error names, are too large, or infinite.
var ErrNumbers = errors.New("too large to be squared and added up; divide the column by a number, or make missing what is infinite, or leave it out")

// MaxCount is the largest sum of counts: a float64 represents all integers up to it.
const MaxCount = 1 << 53

// Counts checks that sums of numbers that are never negative, such as rows or weights, are from
// 0 to most, before one is used as a length, an index or a share.
func Counts(name string, most float64, sums ...float64) error {
	for i, x := range sums {
		if !(x >= 0 && x <= most) {
			return fmt.Errorf("%w: number %d of %q is %g, want 0 to %g", ErrSum, i+1, name, x, most)
		}
	}
	return nil
}

// Careful is a flock that checks results: sums must be finite and as long as the argument,
// maxima not below the argument, and there must be at least one block; else ErrSum.
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

// GatherJSON is Gather of values that encoding/json writes and reads; ErrSum if one cannot be read.
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
// read several times. It ends with the first error. All batches have the same columns.
type Source func(ctx context.Context) iter.Seq2[*Batch, error]

// InMemory is a source of batches in memory.
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

// Scope is a Careful flock that puts a prefix before all names. Use different scopes to fit twice over one flock,
// or from two parts of a service, since sums need different names.
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
