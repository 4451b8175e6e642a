package nn

import (
	"fmt"
	"slices"
)

// Shape is the shape of one example, slowest dimension first: [784] of 784 numbers,
// [28 28 1] of a picture's rows, columns and channels, [128 64] of 128 places in a
// sequence with 64 numbers each.
//
// Pictures have their channels last, where torch has them first; Flatten orders them as
// torch does, so that the weights behind it are torch's.
type Shape []int

// Bounds of a shape.
const (
	maxDims   = 4
	maxValues = 1 << 28 // of one example
)

// Len is the number of values.
func (s Shape) Len() int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}

// Width is the last dimension: the numbers of a row, the channels of a pixel.
func (s Shape) Width() int { return s[len(s)-1] }

// Rows is how many rows of Width an example has.
func (s Shape) Rows() int { return s.Len() / s.Width() }

// withWidth is the shape with another last dimension.
func (s Shape) withWidth(n int) Shape {
	wide := slices.Clone(s)
	wide[len(wide)-1] = n
	return wide
}

// validate returns an error if s is not a valid shape of an example.
func (s Shape) validate() error {
	n := 1
	for _, d := range s {
		if d < 1 || d > maxValues/n {
			return fmt.Errorf("shape %v: want dimensions of at least 1, and at most %d values", []int(s), maxValues)
		}
		n *= d
	}
	if len(s) < 1 || len(s) > maxDims {
		return fmt.Errorf("shape %v: want 1 to %d dimensions", []int(s), maxDims)
	}
	return nil
}
