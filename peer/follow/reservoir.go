package follow

import "math/rand/v2"

// Reservoir keeps as many rows as it was made for of all that were added, each with the same chance: Vitter's algorithm R.
// It is for one goroutine.
type Reservoir[T any] struct {
	rows   []T
	most   int
	seen   float64 // may be a share of rows, after Drop
	chance *rand.Rand
}

// NewReservoir makes a reservoir of so many rows, which draws by the random source.
func NewReservoir[T any](most int, chance *rand.Rand) *Reservoir[T] {
	return &Reservoir[T]{most: max(most, 0), chance: chance}
}

// Add adds a row, which may take the place of another.
func (r *Reservoir[T]) Add(row T) {
	r.seen++
	if len(r.rows) < r.most {
		r.rows = append(r.rows, row)
	} else if at := r.chance.Float64() * r.seen; at < float64(r.most) {
		r.rows[int(at)] = row
	}
}

// Drop keeps what is left of its rows, as if as large a share of those that were added had never been.
func (r *Reservoir[T]) Drop(left func(rows []T) []T) {
	if before := len(r.rows); before > 0 {
		r.rows = left(r.rows)
		r.seen *= float64(len(r.rows)) / float64(before)
	}
}

// Rows are the rows that are kept. They belong to the reservoir, and change with Add.
func (r *Reservoir[T]) Rows() []T { return r.rows }

// Seen is about how many rows those that are kept stand for.
func (r *Reservoir[T]) Seen() int { return int(r.seen) }
