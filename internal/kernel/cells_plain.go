//go:build !amd64 || purego

package kernel

func addCells(to *[4]*[256]Cell, bins []uint32, rows []int32, add []Cell) {
	addCellsGo(to, bins, rows, add)
}
