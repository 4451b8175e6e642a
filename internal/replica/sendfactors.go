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

// factored encodes the next of a product, if the next pieces are of a matrix whose factors are to be sent; else it limits the run to
// the pieces before the next such matrix. The caller holds the slice's lock.
func (s *Sender) factored(frame []byte, info *wire.PartInfo, at *slice, shared int) ([]byte, error) {
	r := s.replica
	if s.terms.Transfer.From != collective.Gradient || info.Codec != uint8(coding.Raw) || info.Weight == 0 || r.buffers.rounding.any.Load() {
		return frame, nil
	}
	f := r.buffers.factors
	f.mu.Lock()
	defer f.mu.Unlock()
	begin, end := r.pieces.span(shared, at.length, s.next, int(info.Pieces))
	i, pieces := s.product(f, at.offset+begin, at.offset+end, int(info.Pieces))
	info.Pieces = uint32(pieces)
	if i < 0 {
		return frame, nil
	}
	if s.told.matrix != i {
		s.told = told{matrix: i, gradient: f.gradient}
	}
	if s.told.gradient != f.gradient {
		return frame, ErrStopped // what has been sent is another gradient's
	}
	m, p := f.matrices[i], &f.known[i]
	info.Rank = uint16(p.rank)
	frame = extend(wire.Reserve(frame), wire.PartInfoSize)
	if left := p.rank - s.told.rows; left > 0 {
		rows := min(left, wire.MaxSliceLen/m.cols)
		info.Form, info.Pieces = wire.FormInputs, uint32(rows)
		frame = tensor.AppendBytes(frame, p.inputs[s.told.rows*m.cols:][:rows*m.cols])
		s.told.rows += rows
		return frame, nil
	}
	info.Form = wire.FormErrors
	for {
		begin, end = r.pieces.span(shared, at.length, s.next, int(info.Pieces))
		if first, last := m.touched(at.offset+begin, at.offset+end); info.Pieces == 1 || p.rank*(last-first) <= wire.MaxSliceLen {
			for row := range p.rank {
				frame = tensor.AppendBytes(frame, p.errors[row*m.rows:][first:last])
			}
			raw, _ := coding.ByID(coding.Raw)
			return frame, sendable(at.in(r.buffers.gradient)[begin:end], r.of(at), raw)
		}
		info.Pieces /= 2
	}
}

// product is the matrix whose factors are to be sent for values from one on, −1 if there is none, and for how many of so many pieces.
func (s *Sender) product(f *factors, from, to, pieces int) (matrix, _ int) {
	length := s.replica.pieces.length
	for i := f.at(from); i < len(f.matrices) && f.matrices[i].offset < to; i++ {
		m := f.matrices[i]
		switch {
		case !m.pays(f.known[i].rank, s.first, s.beyond):
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
