package learn

import (
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// treeSeed makes a separate seed for each tree and each purpose (0: drawing rows, 1: drawing columns).
func treeSeed(seed uint64, tree, purpose int) uint64 {
	return seed + (uint64(tree)*2+uint64(purpose))<<32
}

// isShare tells whether a share of rows or columns is from 0 to 1.
func isShare(share float64) bool { return share >= 0 && share <= 1 }

// sampled returns the function that tells whether a row is drawn, or nil if all rows are. The row's key decides, so a
// row is drawn or not whichever member holds it.
func sampled(keys *table.Batch, share float64, seed uint64) func(row int) bool {
	if share == 0 || share == 1 {
		return nil
	}
	return func(row int) bool { return draw(seed, 0, keys.Key(row)) < share }
}

// sampleColumns draws n of a list of columns. It returns them in ascending order, in the memory of the list.
func sampleColumns(all []int32, n int, seed uint64, node int) []int32 {
	for i := range n {
		j := i + int(draw(seed, node, int64(i))*float64(len(all)-i))
		all[i], all[j] = all[j], all[i]
	}
	slices.Sort(all[:n])
	return all[:n]
}
