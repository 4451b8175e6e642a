package learn

import (
	"math"
	"math/bits"
)

// Bits of a gradient and of a weight, at most. Sums of them are whole numbers that a float64 holds exactly, so
// neither the order of the rows nor their division among members changes a sum: four peers grow the same trees as one
// with all rows. An error of 2^-24 of the largest gradient is less than the rounding of libraries that use float32.
const (
	gradientBits = 24
	weightBits   = 16
	exactBits    = 53 // of a float64
)

// gradient is that of a row in units of gUnit, and its weight in units of hUnit: 0 for what all rows have alike.
type gradient struct{ g, h int32 }

// gradients are what a tree is fitted to. Each row of this member has a gradient (how the output should change) and a
// weight (the second derivative of the loss), or a class and a weight.
type gradients struct {
	rows     []gradient
	class    []uint8 // nil if there are gradients
	weighted bool    // else each row weighs 1
	outputs  int     // of a leaf: 1, or the number of classes
	shift    uint    // bits for the number of rows in cell.HN
	gBits    uint    // |g| <= 1<<gBits
	hBits    uint    // h <= 1<<hBits
	signed   bool    // g may be negative
	gUnit    float64
	hUnit    float64
	perG     float64 // 1/gUnit, which is exact: units are powers of 2
	perH     float64
}

// newGradients allocates memory for all rows; with more than one output they have classes.
func newGradients(b *binned, outputs int, weighted bool) *gradients {
	rows := uint(bits.Len64(uint64(b.all)))
	grad := &gradients{rows: make([]gradient, b.rows), weighted: weighted, outputs: outputs, shift: rows, gUnit: 1, hUnit: 1, perG: 1, perH: 1}
	if outputs == 1 {
		grad.signed = true
		grad.gBits = min(gradientBits, exactBits-1-rows)
	}
	if weighted {
		grad.hBits = min(weightBits, exactBits-rows, 64-2*rows)
	}
	return grad
}

// scale sets the units so that gradients up to g and weights up to h fit.
func (d *gradients) scale(g, h float64) {
	if d.signed {
		d.gUnit = powerAbove(g) / float64(int64(1)<<d.gBits)
		d.perG = 1 / d.gUnit
	}
	if d.weighted {
		d.hUnit = powerAbove(h) / float64(int64(1)<<d.hBits)
		d.perH = 1 / d.hUnit
	}
}

// leastExponent is that of the least unit, before bits are taken from it: its inverse is a number too.
const leastExponent = -900

// powerAbove returns a power of 2 that is not below x: dividing by it does not round.
func powerAbove(x float64) float64 {
	fraction, exponent := math.Frexp(x)
	if fraction == 0.5 {
		exponent--
	}
	return math.Ldexp(1, max(exponent, leastExponent))
}

// set stores the gradient and the weight of a row.
func (d *gradients) set(row int, g, h float64) {
	one := gradient{g: int32(math.RoundToEven(g * d.perG))}
	if d.weighted {
		one.h = int32(math.RoundToEven(h * d.perH))
	}
	d.rows[row] = one
}

// value is the output of a leaf whose rows have the sums g and h. l2 is the penalty of its size.
func (d *gradients) value(g, h, l2 float64) float64 {
	// The conversion prevents compilers from fusing the product with the sum: only some processors would do so, and
	// all members must make the same model.
	below := float64(h*d.hUnit) + l2
	if below <= 0 {
		return 0
	}
	return float64(g*d.gUnit) / below
}

// stride is how many numbers a histogram has for each bin: the rows, their weight, and a sum for each output.
func (d *gradients) stride() int { return 2 + d.outputs }

// classes is how many cells a bin has.
func (d *gradients) classes() int {
	if d.class != nil {
		return d.outputs
	}
	return 1
}
