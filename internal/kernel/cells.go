package kernel

// Cell has two sums over the rows of a bin of a histogram. Their names are those of trees: gradients, and weights with
// how many rows they are of, packed into one number.
type Cell struct {
	G  int64
	HN uint64
}

// AddCells adds the rows of a table to histograms of four lanes. A row has stride numbers, of which the first in bins has its bins
// in these lanes, the first lane's in the lowest byte:
//
//	for i, row := range rows {
//		for lane := range to {
//			to[lane][byte(bins[int(row)*stride]>>(8*lane))] += add[i]
//		}
//	}
//
// It panics if there is no such row in bins, or fewer cells in add than rows.
func AddCells(to *[4]*[256]Cell, bins []uint32, stride int, rows []int32, add []Cell) {
	addCells(to, bins, stride, rows, add[:len(rows)])
}
