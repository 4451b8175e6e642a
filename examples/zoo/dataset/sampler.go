package dataset

import (
	"fmt"
	"math/rand/v2"

	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
)

// BatchError: a batch has more pictures than the data.
type BatchError struct {
	// Batch is the requested size, Have the number of pictures.
	Batch, Have int
}

func (e *BatchError) Error() string {
	if e.Batch < 1 {
		return fmt.Sprintf("dataset: a batch of %d examples: want at least 1", e.Batch)
	}
	return fmt.Sprintf("dataset: a batch of %d examples is larger than the data, which has %d: use a smaller batch, fewer parts or more data", e.Batch, e.Have)
}

// Sampler returns an endless sequence of batches. It goes through the set in one random order after another. Each
// pass shows every picture exactly once, so a batch may have the end of one pass and the start of the next. Not safe
// for concurrent use.
type Sampler struct {
	set     *Set
	batch   int
	order   []int32
	next    int
	rng     *rand.Rand
	augment *augmenter
}

// NewSampler samples batches of the given size, without varying pictures. The order depends only on the seed and the
// length of the set. The error is a *BatchError.
func NewSampler(set *Set, batch int, seed uint64) (*Sampler, error) {
	return newSampler(set, batch, seed, Augment{})
}

func newSampler(set *Set, batch int, seed uint64, a Augment) (*Sampler, error) {
	if batch < 1 || batch > set.Len() {
		return nil, &BatchError{Batch: batch, Have: set.Len()}
	}
	rng := seeded.Rand(seed, seeded.Order, 0)
	s := &Sampler{set: set, batch: batch, order: seeded.Identity(set.Len()), rng: rng, augment: newAugmenter(a, set.shape, seed)}
	s.shuffle()
	return s, nil
}

// Next fills the batch. It allocates only when the batch must grow, and never fails.
func (s *Sampler) Next(b *Batch) error {
	b.Resize(s.batch, s.set.inputs)
	for row := range s.batch {
		if s.next == len(s.order) {
			s.shuffle()
		}
		i := int(s.order[s.next])
		s.next++
		b.Labels[row] = s.set.labels[i]
		s.set.show(b.row(row, s.set.inputs), i, s.augment)
	}
	return nil
}

// Close does nothing.
func (s *Sampler) Close() error { return nil }

func (s *Sampler) shuffle() {
	seeded.Shuffle(s.rng, s.order)
	s.next = 0
}
