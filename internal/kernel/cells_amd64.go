//go:build !purego

package kernel

func addCells(to *[4]*[256]Cell, bins []uint32, rows []int32, add []Cell) {
	if level < levelAVX2 {
		addCellsGo(to, bins, rows, add)
		return
	}
	for len(rows) > 0 {
		n := min(len(rows), piece)
		if left := addCellsAVX2(to, bins, rows[:n], add); left > 0 {
			_ = bins[rows[n-left]] // panics
		}
		rows, add = rows[n:], add[n:]
	}
}
