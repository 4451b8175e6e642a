package replica

import (
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// factoring is the product that a Receiver takes in: its inputs, and then errors, each of which it multiplies.
type factoring struct {
	matrix, rank   int
	rows           int           // of the inputs that have come
	inputs, errors tensor.Vector // errors are of a PART
	products       tensor.Vector // of the rows of the matrix that the PART has values of
	mul            tensor.Multiplier
}

// factorable is the matrix of the next piece, where factors can come that pay.
func (f *factoring) factorable(p *passage, info wire.PartInfo) (matrix int, err error) {
	if p.terms.Transfer.From != collective.Gradient || info.Codec != uint8(coding.Raw) || !slices.Contains(p.terms.Codecs, coding.Raw) {
		return 0, fmt.Errorf("factors of %s, coded by %d: %w", p.terms.Transfer.From, info.Codec, ErrCodec)
	}
	known, value := p.replica.buffers.factors, p.replica.pieces.offset(p.replica, p.next)
	i := known.at(value)
	if i == len(known.matrices) || value < known.matrices[i].offset || !known.pays(known.matrices[i], int(info.Rank), p.first, p.beyond) {
		return 0, fmt.Errorf("factors of %d rows for value %d: %w", info.Rank, value, ErrImplausible)
	}
	return i, nil
}

// takeInputs takes in rows of the inputs, all of them, or fails.
func (f *factoring) takeInputs(p *passage, info wire.PartInfo, code []byte) error {
	i, err := f.factorable(p, info)
	if err != nil {
		return err
	}
	cols := p.replica.buffers.factors.matrices[i].cols
	if f.matrix != i {
		f.matrix, f.rank, f.rows, f.inputs = i, int(info.Rank), 0, f.inputs[:0]
	}
	if int(info.Rank) != f.rank || int64(info.Pieces) > int64(f.rank-f.rows) {
		return fmt.Errorf("%d rows of %d, after %d of %d: %w", info.Pieces, info.Rank, f.rows, f.rank, ErrOrder)
	}
	had, rows := len(f.inputs), int(info.Pieces)
	if len(code) != rows*cols*tensor.ValueSize {
		return fmt.Errorf("%d bytes for %d rows of %d inputs: %w", len(code), rows, cols, coding.ErrSize)
	}
	f.inputs = append(f.inputs, make(tensor.Vector, rows*cols)...)
	tensor.FromBytes(f.inputs[had:], code)
	if !tensor.Finite(f.inputs[had:]) {
		return fmt.Errorf("inputs: %w", ErrImplausible)
	}
	f.rows += rows
	return nil
}

// multiply returns the values from one to another of the model's, by their errors.
func (f *factoring) multiply(p *passage, info wire.PartInfo, from, to int, code []byte) (tensor.Vector, error) {
	i, err := f.factorable(p, info)
	if err != nil {
		return nil, err
	}
	m := p.replica.buffers.factors.matrices[i]
	if f.matrix != i || f.rank != int(info.Rank) || f.rows < f.rank || to > m.end() {
		return nil, fmt.Errorf("errors of %d rows for values %d to %d, after %d of %d rows of inputs: %w", info.Rank, from, to-1, f.rows, f.rank, ErrOrder)
	}
	first, end := m.touched(from, to)
	rows := end - first
	if len(code) != f.rank*rows*tensor.ValueSize {
		return nil, fmt.Errorf("%d bytes for the errors of %d rows at %d outputs: %w", len(code), f.rank, rows, coding.ErrSize)
	}
	f.errors, f.products = ring(f.errors, f.rank*rows), ring(f.products, rows*m.cols)
	tensor.FromBytes(f.errors, code)
	errors, inputs := tensor.NewMatrix(f.rank, rows, f.errors), tensor.NewMatrix(f.rank, m.cols, f.inputs)
	f.mul.MatMul(tensor.NewMatrix(rows, m.cols, f.products), 1, errors.T(), inputs, 0)
	begin := from - m.offset - first*m.cols
	return f.products[begin : begin+to-from], nil
}
