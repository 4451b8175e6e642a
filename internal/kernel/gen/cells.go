package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// cellLanes is in how many lanes a row is added at once: so many bins are in one number.
const cellLanes = 4

// cellText declares what is added, as cells.go of package kernel has it.
const cellText = `
type Cell struct {
	G  int64
	HN uint64
}
`

// addCellKernels adds what sums the cells of histograms: a cell fills half a register of AVX2, and no level is wider.
func addCellKernels(files map[string][]byte) error {
	for _, l := range levels() {
		if l.width != widthY {
			continue
		}
		context := build.NewContext()
		context.ConstraintExpr(constraint)
		r, err := l.declared(context, "addCells", "(to *[4]*[256]Cell, bins []uint32, stride int, rows []int32, add []Cell) int",
			"is addCellsGo, up to the first row that bins has not, and returns how many rows are left.")
		if err != nil {
			return fmt.Errorf("cells: %w", err)
		}
		addCells(r)
		if files["cells_"+l.file+"_amd64.s"], files["cells_"+l.file+"_amd64_gen.go"], err = printed(context); err != nil {
			return fmt.Errorf("cells: %w", err)
		}
	}
	return nil
}

// addCells adds each row's cell to that of its bin in every lane, both sums in one addition.
func addCells(r *routine) {
	const cellSize, cellShift, binMask = 16, 4, 0xff << 4
	list := r.Load(r.Param("to"), r.GP64())
	var lane [cellLanes]reg.GPVirtual
	for i := range lane {
		lane[i] = r.GP64()
		r.MOVQ(operand.Mem{Base: list, Disp: i * 8}, lane[i])
	}
	bins, known := r.Load(r.Param("bins").Base(), r.GP64()), r.Load(r.Param("bins").Len(), r.GP64())
	stride := r.Load(r.Param("stride"), r.GP64())
	rows, left := r.Load(r.Param("rows").Base(), r.GP64()), r.Load(r.Param("rows").Len(), r.GP64())
	add := r.Load(r.Param("add").Base(), r.GP64())
	at, bin, one, sum := r.GP64(), r.GP32(), r.XMM(), r.XMM()
	r.TESTQ(left, left)
	r.JZ(operand.LabelRef("done"))
	r.Label("row")
	r.MOVLQSX(operand.Mem{Base: rows}, at)
	r.IMULQ(stride, at)
	r.CMPQ(at, known)
	r.JAE(operand.LabelRef("done"))
	r.VMOVDQU(operand.Mem{Base: add}, one)
	four := r.GP32()
	r.MOVL(operand.Mem{Base: bins, Index: at, Scale: 4}, four)
	for i, cells := range lane {
		r.MOVL(four, bin)
		if i == 0 {
			r.SHLL(operand.U8(cellShift), bin)
		} else {
			r.SHRL(operand.U8(8*i-cellShift), bin)
		}
		r.ANDL(operand.U32(binMask), bin)
		cell := operand.Mem{Base: cells, Index: bin.As64(), Scale: 1}
		r.VPADDQ(cell, one, sum)
		r.VMOVDQU(sum, cell)
	}
	r.ADDQ(operand.U8(4), rows)
	r.ADDQ(operand.U8(cellSize), add)
	r.DECQ(left)
	r.JNZ(operand.LabelRef("row"))
	r.Label("done")
	r.Store(left, r.ReturnIndex(0))
	r.close()
}
