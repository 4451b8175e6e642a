package read

import (
	"context"
	"errors"
	"iter"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Shared decodes a source once and gives its batches, held in memory, to all who ask: N peers
// of one process, each with a filter of its own, read each row once. They may ask at the same
// time, and as often as they like: the first pass holds the rows, the others wait for it. A
// pass that ends early or with an error holds nothing, and the next one tries again. A source
// of more than limit bytes in memory is not held: each then decodes it anew, in bounded
// memory.
//
// Rows are held rather than handed to all in lock-step, since members that wait for one
// another's sums between their rows would wait for ever in such a step, and since learners
// hold their rows in any case.
func Shared(source table.Source, limit int64) table.Source {
	s := &shared{source: source, limit: limit, turn: make(chan struct{}, 1)}
	return s.rows
}

// shared is a source of which batches are held. The turn protects them.
type shared struct {
	source table.Source
	limit  int64
	turn   chan struct{}
	held   []*table.Batch
	done   bool // everything is held
	large  bool // it is more than limit
}

func (s *shared) rows(ctx context.Context) iter.Seq2[*table.Batch, error] {
	return func(yield func(*table.Batch, error) bool) {
		from, err := s.load(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		from(ctx)(yield)
	}
}

// load holds the rows unless they are held already, and is what to read from.
func (s *shared) load(ctx context.Context) (table.Source, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.large {
		return s.source, nil
	}
	if s.done {
		return table.InMemory(s.held...), nil
	}
	held, err := table.Hold(ctx, s.source, s.limit)
	if errors.Is(err, table.ErrTooLarge) {
		s.large = true
		return s.source, nil
	}
	if err != nil {
		return nil, err
	}
	s.held, s.done = held, true
	return table.InMemory(held...), nil
}
