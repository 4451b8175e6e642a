package peer

import (
	"sync/atomic"

	"github.com/seed-97356399/murmuration/averaging"
)

// batch is how many samples the machine wants the next gradient to be of, 0 if it does
// not say.
type batch struct {
	machine averaging.BatchSizer // nil if the machine has no wish
	wish    atomic.Int64
}

// take takes the machine's wish. Only the loop calls it.
func (b *batch) take() {
	if b.machine != nil {
		b.wish.Store(int64(b.machine.Batch()))
	}
}

// Batch is how many samples the next gradient should be of, so that all peers take
// equally long for theirs: as the algorithm divides the flock's work by the peers'
// speeds, or own if it does not. The numbers are to be told in Result.Samples. It
// changes from step to step. Safe for concurrent use.
func (p *Peer) Batch(own int) int {
	if wish := p.batch.wish.Load(); wish > 0 {
		return int(wish)
	}
	return own
}
