package replica

import (
	"math"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/tensor"
)

// difference is what one side adds to a part and the other subtracts. A difference in whole
// steps stays encoded, and is added while it is decoded: to write its values to memory and
// read them again would double the time.
type difference struct {
	steps  coding.Steps
	code   []byte        // whole steps, checked
	values tensor.Vector // of any other code
}

// differenceOf reads the difference of len(scratch) values that a code has. It may keep
// code, or use scratch.
func differenceOf(coder coding.Coder, code []byte, scratch tensor.Vector) (difference, error) {
	if steps, ok := coder.(coding.Steps); ok {
		return difference{steps: steps, code: code}, steps.Check(len(scratch), code)
	}
	values, err := decoded(coder, code, scratch, nil)
	return difference{values: values}, err
}

// norm is that of the n values of the difference.
func (d *difference) norm(n int) float64 {
	if d.values == nil {
		return math.Sqrt(d.steps.SquaredNorm(d.code, n))
	}
	return tensor.Norm2(d.values)
}

// changes are the blocks of a slice of n values that the difference changes: not those of a lattice that have failed.
func (d *difference) changes(p *part, n int) (blocks [maxSetSize]byte) {
	coded := 0
	for i := range coding.Blocks(n) {
		if p.size > 0 && !p.which().Has(i) {
			continue
		}
		if d.values != nil || !d.steps.Zero(d.code, coded) {
			coding.Set(blocks[:]).Put(i)
		}
		coded++
	}
	return blocks
}

// add adds sign, which is 1 or -1, times the difference to the part of a slice.
func (d *difference) add(p *part, own tensor.Vector, sign float32) {
	if p.size == 0 {
		d.addRun(own, 0, sign)
		return
	}
	at := 0
	for from, to := range p.which().Runs(len(own)) {
		d.addRun(own[from:to], at, sign)
		at += to - from
	}
}

// addRun adds the values from one on, which is the first of a block.
func (d *difference) addRun(own tensor.Vector, from int, sign float32) {
	switch {
	case d.values == nil:
		d.steps.Add(own, d.code[d.steps.Size(from):], sign)
	case sign > 0:
		tensor.Add(own, d.values[from:][:len(own)])
	default:
		tensor.Sub(own, d.values[from:][:len(own)])
	}
}
