package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// multiplyAddPeak writes a loop of multiplications and additions in as many
// accumulators as a product has, whose sums nobody takes.
func multiplyAddPeak(r *routine) {
	count := r.Load(r.Param("iterations"), r.GP64())
	x := r.bits(0x3f800000) // 1: the sums stop growing at 2²⁴
	var acc []reg.VecVirtual
	for range peakAccumulators(r.level) {
		v := r.register(r.width)
		r.VXORPS(v, v, v)
		acc = append(acc, v)
	}
	r.Label("loop")
	for _, a := range acc {
		r.VFMADD231PS(x, x, a)
	}
	r.DECQ(count)
	r.JNZ(operand.LabelRef("loop"))
	r.close()
}

// peakAccumulators is how many accumulators the loop of the peak has.
func peakAccumulators(l level) int {
	k := gemmKernels(l)[0]
	return k.vectors * k.rows
}

// transposed is how many rows, and columns of the result, transpose works on.
const transposed = 8

// transpose writes four columns of the rows at a time: each 128 bits of a
// register hold those of one row, and the 4 by 4 in each half are transposed.
func transpose(r *routine) {
	const quad = 4
	dst, dstStep := r.Load(r.Param("dst"), r.GP64()), r.Load(r.Param("dstStep"), r.GP64())
	row, depth := rowsOf(r), r.Load(r.Param("depth"), r.GP64())
	advance := func(columns int) {
		for _, p := range row {
			r.ADDQ(operand.U8(columns*floatSize), p)
		}
	}
	r.SUBQ(operand.U32(quad), depth)
	r.JB(operand.LabelRef("rest"))
	r.Label("quads")
	for _, v := range quads(r, row) {
		r.VMOVUPS(v, operand.Mem{Base: dst})
		r.ADDQ(dstStep, dst)
	}
	advance(quad)
	r.SUBQ(operand.U32(quad), depth)
	r.JAE(operand.LabelRef("quads"))
	r.Label("rest")
	r.ADDQ(operand.U32(quad), depth)
	r.JZ(operand.LabelRef("done"))
	r.Label("singles")
	for i, p := range row {
		v := r.XMM()
		r.VMOVSS(operand.Mem{Base: p}, v)
		r.VMOVSS(v, operand.Mem{Base: dst, Disp: i * floatSize})
	}
	r.ADDQ(dstStep, dst)
	advance(1)
	r.DECQ(depth)
	r.JNZ(operand.LabelRef("singles"))
	r.Label("done")
	r.close()
}

// rowsOf returns the addresses of the rows; those that are missing are the last
// one again.
func rowsOf(r *routine) []reg.GPVirtual {
	src, step, rows := r.GP64(), r.GP64(), r.GP64()
	r.Load(r.Param("src"), src)
	r.Load(r.Param("srcStep"), step)
	r.Load(r.Param("rows"), rows)
	row := []reg.GPVirtual{src}
	for i := 1; i < transposed; i++ {
		p, next := r.GP64(), r.GP64()
		r.MOVQ(row[i-1], p)
		r.LEAQ(operand.Mem{Base: p, Index: step, Scale: 1}, next)
		r.CMPQ(rows, operand.U32(i))
		r.CMOVQHI(next, p)
		row = append(row, p)
	}
	return row
}

// quads returns the four next columns of the rows.
func quads(r *routine, row []reg.GPVirtual) []reg.VecVirtual {
	const (
		firstPairs  = 0b01_00_01_00
		secondPairs = 0b11_10_11_10
	)
	half := len(row) / 2
	var x []reg.VecVirtual
	for i := range half {
		v := r.YMM()
		r.VMOVUPS(operand.Mem{Base: row[i]}, v.AsX())
		r.VINSERTF128(operand.U8(1), operand.Mem{Base: row[i+half]}, v, v)
		x = append(x, v)
	}
	var low, high []reg.VecVirtual
	for i := 0; i < half; i += 2 {
		l, h := r.YMM(), r.YMM()
		r.VUNPCKLPS(x[i+1], x[i], l)
		r.VUNPCKHPS(x[i+1], x[i], h)
		low, high = append(low, l), append(high, h)
	}
	var columns []reg.VecVirtual
	for _, pair := range [][]reg.VecVirtual{low, high} {
		for _, pick := range []uint8{firstPairs, secondPairs} {
			v := r.YMM()
			r.VSHUFPS(operand.U8(pick), pair[1], pair[0], v)
			columns = append(columns, v)
		}
	}
	return columns
}
