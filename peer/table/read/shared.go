package read

import (
	"context"
	"errors"
	"iter"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Shared decodes a source once, holds its batches in memory, and gives them to all readers. So N
// peers of one process, each with a filter of its own, decode each row once. They may read at the
// same time, and any number of times: the first pass decodes, and the others wait for it. If it
// fails or is cancelled, nothing is held, and the next pass tries again. If the rows take more
// than limit bytes, they are not held: each pass then decodes the source anew, in bounded memory.
//
// The rows are not handed to all readers in lock-step: between their rows, members wait for one
// another's sums, and would then wait for ever. Besides, learners hold their rows in any case.
func Shared(source table.Source, limit int64) table.Source {
	s := &shared{source: source, limit: limit, turn: make(chan struct{}, 1)}
	return s.rows
}

// shared is a source and the batches held of it. Its fields are used only while turn is held.
type shared struct {
	source table.Source
	limit  int64
	turn   chan struct{}
	held   []*table.Batch
	done   bool // all batches are held
	large  bool // the batches take more than limit bytes
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

// load decodes the rows unless they are held already, and returns the source to read from.
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
