package kernel

// Cell has two sums over the rows of a bin of a histogram. Their names are those of trees: gradients, and weights with
// how many rows they are of, packed into one number.
type Cell struct {
	G  int64
	HN uint64
}

// AddCells adds the rows of a table to histograms of four columns, of which bins has the bins of each row, the first
// column's in the lowest byte:
//
//	for i, row := range rows {
//		for c := range to {
//			to[c][byte(bins[row]>>(8*c))] += add[i]
//		}
//	}
//
// It panics if there is no such row in bins, or fewer cells in add than rows.
func AddCells(to *[4]*[256]Cell, bins []uint32, rows []int32, add []Cell) {
	addCells(to, bins, rows, add[:len(rows)])
}
