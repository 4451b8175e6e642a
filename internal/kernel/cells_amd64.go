//go:build !purego

package kernel

func addCells(to *[4]*[256]Cell, bins []uint32, stride int, rows []int32, add []Cell) {
	if level < levelAVX2 {
		addCellsGo(to, bins, stride, rows, add)
		return
	}
	for len(rows) > 0 {
		n := min(len(rows), piece)
		if left := addCellsAVX2(to, bins, stride, rows[:n], add); left > 0 {
			_ = bins[int(rows[n-left])*stride] // panics
		}
		rows, add = rows[n:], add[n:]
	}
}
