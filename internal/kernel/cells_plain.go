//go:build !amd64 || purego

package kernel

func addCells(to *[4]*[256]Cell, bins []uint32, stride int, rows []int32, add []Cell) {
	addCellsGo(to, bins, stride, rows, add)
}
