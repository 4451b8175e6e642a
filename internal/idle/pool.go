// Package idle keeps what is dear to make, such as buffers, from one use to the next.
package idle

// Pool keeps a bounded number of values that nobody is using. Safe for concurrent use.
type Pool[T any] struct {
	kept  chan T
	build func() T
}

// NewPool makes a pool that keeps at most so many values, and has build make one when
// it has none left.
func NewPool[T any](most int, build func() T) Pool[T] {
	return Pool[T]{kept: make(chan T, most), build: build}
}

// Take gives a value that is the caller's until Put.
func (p Pool[T]) Take() T {
	select {
	case value := <-p.kept:
		return value
	default:
		return p.build()
	}
}

// Put takes a value back, and forgets it if enough are kept.
func (p Pool[T]) Put(value T) {
	select {
	case p.kept <- value:
	default:
	}
}
