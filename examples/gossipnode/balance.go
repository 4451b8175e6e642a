package main

import "github.com/seed-97356399/murmuration/examples/zoo/dataset"

// nextBatch takes the next batch: of the size that the peers have agreed on, if they
// share their pictures out by speed.
func (t *training) nextBatch() error {
	if !t.divides() {
		return t.batches.Next(&t.batch)
	}
	return t.measured.fill(&t.batch, t.peer.Batch(t.Batch))
}

// drawn is the size of the batches that are drawn from the data.
func (s trainSettings) drawn() int {
	if s.divides() {
		return 1
	}
	return s.Batch
}

// measured is a supply of batches of any size, put together from single pictures.
type measured struct {
	singly dataset.Batches // of one picture each
	one    dataset.Batch
}

// fill fills a batch with so many pictures.
func (m *measured) fill(b *dataset.Batch, pictures int) error {
	for row := range pictures {
		if err := m.singly.Next(&m.one); err != nil {
			return err
		}
		inputs := len(m.one.X)
		if row == 0 {
			b.Resize(pictures, inputs)
		}
		copy(b.X[row*inputs:], m.one.X)
		b.Labels[row] = m.one.Labels[0]
	}
	return nil
}
