// Package idle keeps values that are costly to make, such as buffers, for their next use.
package idle

// Pool keeps a bounded number of unused values. Safe for concurrent use.
type Pool[T any] struct {
	kept  chan T
	build func() T
}

// NewPool makes a pool that keeps at most most values. It calls build when no value is left.
func NewPool[T any](most int, build func() T) Pool[T] {
	return Pool[T]{kept: make(chan T, most), build: build}
}

// Take returns a value that the caller owns until Put.
func (p Pool[T]) Take() T {
	select {
	case value := <-p.kept:
		return value
	default:
		return p.build()
	}
}

// Put returns a value, and drops it if the pool is full.
func (p Pool[T]) Put(value T) {
	select {
	case p.kept <- value:
	default:
	}
}
