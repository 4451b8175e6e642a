package replica

import (
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// told is what a Sender has sent of a product: first all inputs, then errors for run after run of its values.
type told struct {
	matrix   int
	gradient uint64
	rows     int // of the inputs
}

// encode encodes the next of a product, if a transfer's next pieces are of a matrix whose factors are to be sent; else it limits the run
// to the pieces before the next such matrix. The caller holds the slice's lock.
func (t *told) encode(s *passage, frame []byte, info *wire.PartInfo, at *slice, shared int) ([]byte, error) {
	r := s.replica
	if s.terms.Transfer.From != collective.Gradient || info.Codec != uint8(coding.Raw) || info.Weight == 0 || r.buffers.rounding.any.Load() {
		return frame, nil
	}
	f := r.buffers.factors
	f.mu.Lock()
	defer f.mu.Unlock()
	begin, end := r.pieces.span(shared, at.length, s.next, int(info.Pieces))
	i, pieces := t.next(f, s, at.offset+begin, at.offset+end, int(info.Pieces))
	info.Pieces = uint32(pieces)
	if i < 0 {
		return frame, nil
	}
	if t.matrix != i {
		*t = told{matrix: i, gradient: f.gradient}
	}
	if t.gradient != f.gradient {
		return frame, ErrStopped // what has been sent is another gradient's
	}
	m, p := f.matrices[i], &f.known[i]
	info.Rank = uint16(p.rank)
	frame = extend(wire.Reserve(frame), wire.PartInfoSize)
	if left := p.rank - t.rows; left > 0 {
		rows := min(left, wire.MaxSliceLen/m.cols)
		info.Form, info.Pieces = wire.FormInputs, uint32(rows)
		frame = tensor.AppendBytes(frame, p.inputs[t.rows*m.cols:][:rows*m.cols])
		t.rows += rows
		return frame, nil
	}
	info.Form = wire.FormErrors
	begin, end = r.pieces.span(shared, at.length, s.next, pieces)
	first, last := m.touched(at.offset+begin, at.offset+end)
	for row := range p.rank {
		frame = tensor.AppendBytes(frame, p.errors[row*m.rows:][first:last])
	}
	raw, _ := coding.ByID(coding.Raw)
	return frame, sendable(at.in(r.buffers.gradient)[begin:end], r.of(at), raw)
}

// next is the matrix whose factors are to be sent for values from one on, −1 if there is none, and for how many of so many pieces.
func (t *told) next(f *Factors, s *passage, from, to, pieces int) (matrix, _ int) {
	length := s.replica.pieces.length
	for i := f.at(from); i < len(f.matrices) && f.matrices[i].offset < to; i++ {
		m := f.matrices[i]
		switch {
		case !f.pays(m, f.known[i].rank, s.first, s.beyond):
		case from < m.offset:
			return -1, (m.offset - from + length - 1) / length
		case to <= m.end():
			return i, pieces
		case m.end()-from >= length:
			return i, (m.end() - from) / length
		default: // a piece that another range has the rest of
			return -1, 1
		}
	}
	return -1, pieces
}
