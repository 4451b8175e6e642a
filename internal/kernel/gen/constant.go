package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

// words are the constants of a file, each of which fills a register from memory: there
// are more than registers. They are written after the routines.
type words struct {
	list  []uint32
	masks bool
}

// constant is the memory of a float32 in all places of a register.
func (r *routine) constant(x float64) operand.Mem { return r.word(math.Float32bits(float32(x))) }

// word is the memory of a 32-bit word in all places of a register.
func (r *routine) word(w uint32) operand.Mem {
	if !slices.Contains(r.table.list, w) {
		r.table.list = append(r.table.list, w)
	}
	return operand.NewDataAddr(operand.NewStaticSymbol(wordName(w)), 0)
}

func wordName(w uint32) string { return fmt.Sprintf("word%08x", w) }

// masksName is a table of sumPlaces words of ones and as many zeros after
// them: the mask of n values begins n words before the zeros.
const masksName = "masks"

func (w *words) write(context *build.Context) {
	for _, word := range w.list {
		context.StaticGlobal(wordName(word))
		context.DataAttributes(attr.RODATA | attr.NOPTR)
		for range widthZ / doubleSize {
			context.AppendDatum(operand.U64(uint64(word)<<32 | uint64(word)))
		}
	}
	if !w.masks {
		return
	}
	context.StaticGlobal(masksName)
	context.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 2 * sumPlaces * floatSize / doubleSize {
		context.AppendDatum(operand.U64([2]uint64{math.MaxUint64, 0}[i/(sumPlaces*floatSize/doubleSize)]))
	}
}
