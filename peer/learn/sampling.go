package learn

import (
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// treeSeed makes a seed for each tree, and for each purpose that it has.
func treeSeed(seed uint64, tree, purpose int) uint64 {
	return seed + (uint64(tree)*2+uint64(purpose))<<32
}

// isShare tells whether a share of rows or columns is one.
func isShare(share float64) bool { return share >= 0 && share <= 1 }

// sampled tells whether a row is drawn, by its key, so that it is whoever has it; nil if all
// are.
func sampled(keys *table.Batch, share float64, seed uint64) func(row int) bool {
	if share == 0 || share == 1 {
		return nil
	}
	return func(row int) bool { return draw(seed, 0, keys.Key(row)) < share }
}

// sampleColumns makes of a list of all columns one of n of them, in their order.
func sampleColumns(all []int32, n int, seed uint64, node int) []int32 {
	for i := range n {
		j := i + int(draw(seed, node, int64(i))*float64(len(all)-i))
		all[i], all[j] = all[j], all[i]
	}
	slices.Sort(all[:n])
	return all[:n]
}
