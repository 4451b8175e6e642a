package coding

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// Steps codes each value as a whole number of steps, rounded to nearest; each block has its own size of a step. With
// B bits, numbers are from -L to L for L = 2^(B-1)-1, and L steps are the block's largest magnitude. One bit is the
// sign, and the step is the mean magnitude. Since the error is relative to the block, small differences have small
// errors. With 8 bits it is the codec int8; it also codes the differences of lattice codecs.
//
// The zero Steps codes nothing; take one from a Codec.
type Steps struct{ bits uint8 }

const (
	scaleSize = 4
	// With steps in these bounds, every value is finite and no product is denormal.
	minStep = 0x1p-126
	maxStep = 0x1p120
)

func (c Steps) most() float32 { return float32(max(1, int(1)<<c.bits/2-1)) }

// Size implements Coder.
func (c Steps) Size(n int) int {
	whole, rest := n/BlockLen, n%BlockLen
	size := whole * c.blockSize(BlockLen)
	if rest > 0 {
		size += c.blockSize(rest)
	}
	return size
}

func (c Steps) blockSize(n int) int { return scaleSize + planesSize(n, int(c.bits)) }

func (c Steps) name() string {
	switch c.bits {
	case 8:
		return int8Name
	case 1:
		return "steps of 1 bit"
	}
	return fmt.Sprintf("steps of %d bits", c.bits)
}

// Encode implements Coder. A block whose step would be below 2^-126 becomes zeros.
func (c Steps) Encode(dst []byte, x tensor.Vector) { c.encode(dst, x) }

// encode is Encode, and returns the largest magnitude of x, or 0 with one bit, which does not need it.
func (c Steps) encode(dst []byte, x tensor.Vector) (most float32) {
	checkEncode(c, dst, len(x))
	var w workspace
	for len(x) > 0 {
		n := min(BlockLen, len(x))
		size := c.blockSize(n)
		peak := float32(0)
		if c.bits > 1 {
			peak = kernel.MaxAbs(x[:n])
		}
		c.encodeBlock(dst[:size], x[:n], peak, &w)
		x, dst, most = x[n:], dst[size:], max(most, peak)
	}
	return most
}

// encodeBlock writes the code of a block and returns the squared norm of the coded values. peak is the largest
// magnitude of x; one bit does not need it.
func (c Steps) encodeBlock(dst []byte, x tensor.Vector, peak float32, w *workspace) float64 {
	scale, planes := dst[:scaleSize], dst[scaleSize:]
	step := peak / c.most()
	if c.bits == 1 {
		step = float32(kernel.SumAbs(x) / float64(len(x)))
	}
	if !(step >= minStep) || step > math.MaxFloat32 { // all zeros, or not finite
		if step < minStep {
			step = 0
		}
		putFloat(scale, step)
		clear(planes)
		return 0
	}
	putFloat(scale, step)
	return squared(step, c.encodeNumbers(planes, x, peak, w))
}

// encodeNumbers writes the numbers of steps and returns the sum of their squares.
func (c Steps) encodeNumbers(planes []byte, x tensor.Vector, peak float32, w *workspace) (squares uint32) {
	switch inverse := c.most() / peak; c.bits {
	case 8:
		return kernel.Steps(planes, x, inverse)
	case 4:
		return kernel.Steps4(planes, x, inverse)
	case 1:
		kernel.Signs(w.low[:], x)
		squares = uint32(len(x))
	default:
		squares = kernel.Steps(w.low[:], x, inverse)
	}
	kernel.PackBits(planes, w.low[:len(x)], int(c.bits))
	return squares
}

func squared(step float32, squares uint32) float64 {
	return float64(step) * float64(step) * float64(squares)
}

// Decode implements Coder.
func (c Steps) Decode(dst tensor.Vector, code []byte, _ tensor.Vector) error {
	if err := c.Check(len(dst), code); err != nil {
		return err
	}
	var w workspace
	for i := range Blocks(len(dst)) {
		to, block := c.twoWalks(i, dst, code)
		kernel.StepsDecode(to, c.steps(block, len(to), &w), float(block))
	}
	return nil
}

// Zero tells whether all values of a block are zero; Check has accepted the code.
func (c Steps) Zero(code []byte, block int) bool {
	return float(code[block*c.blockSize(BlockLen):]) == 0
}

// Add adds sign, which is 1 or -1, times the values of a code to dst; Check has accepted the code. The result is that
// of Decode followed by tensor.Add or tensor.Sub, bit for bit, in one pass.
func (c Steps) Add(dst tensor.Vector, code []byte, sign float32) {
	var w workspace
	for i := range Blocks(len(dst)) {
		to, block := c.twoWalks(i, dst, code)
		kernel.StepsAdd(to, c.steps(block, len(to), &w), sign*float(block))
	}
}

// twoWalks returns the i-th block in an order that alternates between the two halves of a slice: memory delivers two
// sequences faster than one.
func (c Steps) twoWalks(i int, dst tensor.Vector, code []byte) (values tensor.Vector, block []byte) {
	at := i/2 + i%2*((Blocks(len(dst))+1)/2)
	n := blockLen(at, len(dst))
	return dst[at*BlockLen:][:n], code[at*c.blockSize(BlockLen):][:c.blockSize(n)]
}

func (c Steps) steps(code []byte, n int, w *workspace) []byte {
	planes := code[scaleSize:]
	if c.bits == bytePlane {
		return planes
	}
	kernel.UnpackSteps(w.low[:n], planes, int(c.bits))
	return w.low[:n]
}

// Check returns an error if Decode would: it checks all of the code of n values.
func (c Steps) Check(n int, code []byte) error {
	if err := checkSize(c, code, n); err != nil {
		return err
	}
	for i := range Blocks(n) {
		values := blockLen(i, n)
		block := code[:c.blockSize(values)]
		code = code[len(block):]
		if err := c.checkBlock(block, values); err != nil {
			return blockError(c.name(), i, err)
		}
	}
	return nil
}

func (c Steps) checkBlock(block []byte, n int) error {
	step, planes := float(block), block[scaleSize:]
	switch {
	case step >= minStep && step <= maxStep:
	case !(step <= maxStep):
		return ErrNotFinite
	case math.Float32bits(step) != 0:
		return ErrScale
	case slices.ContainsFunc(planes, func(b byte) bool { return b != 0 }):
		return ErrScale // so that a block of zeros has only one encoding
	}
	if n < BlockLen && padded(planes, n, int(c.bits)) {
		return ErrPadding
	}
	return nil
}

// The functions below need codes that this program has made or that Check has accepted.

// SquaredNorm is the squared Euclidean norm of the n values of a code, before their rounding to float32.
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

// Shrink multiplies the n values of a code by share, from 0 to 1: it keeps the numbers of steps and shortens the
// steps. Steps are rounded towards zero, so no value becomes longer than share times the old one.
func (c Steps) Shrink(code []byte, n int, share float64) {
	for i := range Blocks(n) {
		block := code[:c.blockSize(blockLen(i, n))]
		if step := RoundedDown(float64(float(block)) * share); step >= minStep {
			putFloat(block, step)
		} else {
			clear(block)
		}
		code = code[len(block):]
	}
}

// RoundedDown rounds a number that is not negative to float32, towards zero.
func RoundedDown(exact float64) float32 {
	rounded := float32(exact)
	if float64(rounded) > exact {
		rounded = math.Nextafter32(rounded, 0)
	}
	return rounded
}

// Stretch bounds the ratio of a code's length to that of its values. In the worst case, rounding doubles all values
// of a block, of half a step each, except the largest, which it keeps. With one bit, codes are not longer, except by
// rounding to float32.
func (c Steps) Stretch() float64 {
	const rounding = 1 + 0x1p-20
	if c.bits == 1 {
		return rounding
	}
	peak := float64(c.most()) * float64(c.most())
	const others = BlockLen - 1
	return rounding * math.Sqrt((peak+others)/(peak+others/4.0))
}

// Peaks writes the largest magnitude in each block of the n values of a code. With one bit it is an estimate: four
// times the mean, as in a block of normally distributed values. dst has Blocks(n) values.
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

func putFloat(b []byte, x float32) { binary.LittleEndian.PutUint32(b, math.Float32bits(x)) }

func float(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
