package quant

import (
	"math"

	"github.com/seed-97356399/murmuration/internal/kernel"
)

// What follows works on codes of this program, or that Decode or Add has taken.

// SquaredNorm is the squared Euclidean norm of the n values of a code, as numbers
// that are not rounded to float32.
func (c Steps) SquaredNorm(code []byte, n int) float64 {
	var w workspace
	total := 0.0
	for i := range Blocks(n) {
		values := blockLen(i, n)
		block := code[:c.blockSize(values)]
		if step := float(block); step != 0 {
			squares := uint32(values)
			if c.bits > 1 {
				squares = kernel.StepSquares(c.steps(block, values, &w))
			}
			total += squared(step, squares)
		}
		code = code[len(block):]
	}
	return total
}

// Shrink multiplies the n values of a code by share, which is from 0 to 1: the code
// codes the same numbers of steps that are as much shorter. Steps are rounded
// towards zero, so that no value is longer than share says.
func (c Steps) Shrink(code []byte, n int, share float64) {
	for i := range Blocks(n) {
		block := code[:c.blockSize(blockLen(i, n))]
		if step := shrunk(float(block), share); step >= minStep {
			putFloat(block, step)
		} else {
			clear(block)
		}
		code = code[len(block):]
	}
}

// shrunk is step times share, rounded towards zero.
func shrunk(step float32, share float64) float32 {
	exact := float64(step) * share
	rounded := float32(exact)
	if float64(rounded) > exact {
		rounded = math.Nextafter32(rounded, 0)
	}
	return rounded
}

// Stretch bounds how much longer the values of a code can be than what they code:
// rounding makes values of half a step twice as long, beside one that is not
// rounded. With one bit they are never longer, but for rounding to float32.
func (c Steps) Stretch() float64 {
	const rounding = 1 + 0x1p-20
	if c.bits == 1 {
		return rounding
	}
	peak := float64(c.most()) * float64(c.most())
	const others = BlockLen - 1
	return rounding * math.Sqrt((peak+others)/(peak+others/4.0))
}

// Peaks writes an estimate of the largest magnitude in each block of the n values of
// a code, which is exact but for one bit: there it is four times the mean, about
// what a block of normally distributed values has. Dst has Blocks(n) values.
func (c Steps) Peaks(dst []float32, code []byte, n int) {
	const overMean = 4
	times := c.most()
	if c.bits == 1 {
		times = overMean
	}
	for i := range dst[:Blocks(n)] {
		dst[i] = times * float(code)
		code = code[c.blockSize(blockLen(i, n)):]
	}
}
