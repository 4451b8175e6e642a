package main

import (
	"github.com/mmcloughlin/avo/reg"
)

// view returns the low bytes of v as a register of that size.
func view(v reg.VecVirtual, bytes int) reg.Register {
	switch {
	case bytes <= widthX:
		return v.AsX()
	case bytes == widthY:
		return v.AsY()
	default:
		return v.AsZ()
	}
}
