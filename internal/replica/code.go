package replica

import (
	"slices"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/tensor"
)

// extend makes dst longer by n bytes, whose contents are whatever.
func extend(dst []byte, n int) []byte {
	return slices.Grow(dst, n)[:len(dst)+n]
}

// decoded returns the values of a code: the code's own memory if the coder allows
// it, whose values may then be NaN or infinite, and else scratch.
func decoded(coder coding.Coder, code []byte, scratch, reference tensor.Vector) (tensor.Vector, error) {
	if len(code) == coder.Size(len(scratch)) {
		if view, ok := drawn(coder, code, scratch); ok {
			return view, nil
		}
	}
	return scratch, coder.Decode(scratch, code, reference)
}

// drawn returns where to write values that are to be coded in code: right there
// if the coder allows it, and else in scratch, from which they must be encoded.
func drawn(coder coding.Coder, code []byte, scratch tensor.Vector) (values tensor.Vector, inPlace bool) {
	if float, ok := coder.(coding.Float); ok {
		if view, ok := float.View(code); ok {
			return view, true
		}
	}
	return scratch, false
}
