package sums

import (
	"math/bits"
	"slices"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// blocks are the blocks of an attempt at a gathering, by rank.
type blocks struct {
	each   [][]byte
	totals []int  // bytes of each block; -1 before any has come
	bytes  uint64 // of all blocks so far
	excess int    // rank of the largest block, if all together are too large; else -1
}

func newBlocks(a *attempt) blocks {
	b := blocks{each: make([][]byte, a.size), totals: slices.Repeat([]int{-1}, a.size), bytes: uint64(len(a.Data)), excess: -1}
	b.each[a.rank], b.totals[a.rank] = slices.Clone(a.Data), len(a.Data)
	return b
}

// begin sends this participant's own block.
func (b *blocks) begin(a *attempt) {
	data := b.each[a.rank]
	for offset := 0; offset == 0 || offset < len(data); offset += wire.MaxShare {
		b.pass(a, 0, offset, len(data), data[offset:min(offset+wire.MaxShare, len(data))])
	}
}

// begun is the received share of the incomplete blocks of a step.
func (b *blocks) begun(a *attempt, t *taking) (share float64) {
	for beyond := t.from; beyond < t.to; beyond++ {
		if rank := (a.rank + beyond) % a.size; len(b.each[rank]) < b.totals[rank] {
			share += float64(len(b.each[rank])) / float64(b.totals[rank])
		}
	}
	return share
}

// pass sends on bytes of the block whose rank is this participant's plus beyond.
func (b *blocks) pass(a *attempt, beyond, offset, total int, data []byte) {
	for _, h := range a.hands[bits.Len(uint(beyond)):] {
		if step := beyond + 1<<h.index; step < h.to {
			a.send(a.partner(h.peer), wire.Share{
				Name: a.Name, Attempt: a.number, Step: uint32(step - 1), Offset: uint64(offset), Total: uint64(total), Data: data,
			})
		}
	}
}

// take stores bytes of a block. Several blocks may come at the same time.
func (b *blocks) take(a *attempt, from ID, s *wire.Share) bool {
	if uint64(s.Step) >= uint64(a.size-1) || s.Total > MaxGather || b.excess >= 0 {
		return false
	}
	beyond := int(s.Step) + 1
	i := bits.Len(uint(beyond)) - 1
	if a.partner(a.takes[i].peer) != from {
		return false
	}
	rank := (a.rank + beyond) % a.size
	total, here := &b.totals[rank], len(b.each[rank])
	first := *total < 0
	if s.Offset != uint64(here) || !first && (uint64(*total) != s.Total || here == *total) {
		return false
	}
	if *total = int(s.Total); first && b.exceeds() {
		return false
	}
	b.each[rank], b.bytes = append(b.each[rank], s.Data...), b.bytes+uint64(len(s.Data))
	if here+len(s.Data) == *total {
		t := &a.takes[i]
		t.came++
		t.whole = t.came == t.to-t.from
	}
	a.next()
	if beyond+1<<(i+1) < a.size {
		b.pass(a, beyond, here, *total, slices.Clone(s.Data))
	}
	return true
}

// exceeds tells whether all blocks together are too large, and stores the rank of the largest.
func (b *blocks) exceeds() bool {
	together := 0
	for _, total := range b.totals {
		together += max(total, 0)
	}
	if together > MaxGathered {
		b.excess = slices.Index(b.totals, slices.Max(b.totals))
	}
	return together > MaxGathered
}
