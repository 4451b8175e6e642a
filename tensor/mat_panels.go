package tensor

import "github.com/seed-97356399/murmuration/internal/kernel"

// panels passes a block of B to the microkernels, panel by panel.
type panels struct {
	tiler  kernel.Tiler
	b      Matrix
	room   Vector
	kept   bool // room is large enough for all panels, not just for one
	packed bool // room holds all panels already
}

func (r *tileRoom) panelsOf(tiler kernel.Tiler, b Matrix, keep bool) panels {
	wide, _ := tiler.Columns()
	size := wide * b.Rows
	if keep {
		size *= (b.Cols + wide - 1) / wide
	}
	return panels{tiler: tiler, b: b, room: atLeast(&r.panels, size), kept: keep}
}

// multiply is MatMul with b as its second factor.
func (s *panels) multiply(c Matrix, alpha float32, a Matrix, beta float32) {
	p := kernel.GemmPanel{
		A: &a.Data[0], RowStep: ValueSize * a.Stride, DepthStep: ValueSize,
		BStep: ValueSize * s.b.Stride, CStep: ValueSize * c.Stride,
		Rows: c.Rows, Depth: a.Cols, Alpha: alpha, Beta: beta,
	}
	if a.transposed {
		p.RowStep, p.DepthStep = p.DepthStep, p.RowStep
	}
	wide, _ := s.tiler.Columns()
	for j := 0; j < c.Cols; j += wide {
		columns := min(wide, c.Cols-j)
		p.C = &c.Data[j]
		s.provide(&p, j, columns)
		s.tiler.Multiply(&p, columns)
	}
}

// provide sets p to the panel of that many columns from j on, and to the panel after it.
func (s *panels) provide(p *kernel.GemmPanel, j, columns int) {
	wide, narrow := s.tiler.Columns()
	room, after := s.room, j+wide
	if s.kept {
		room = room[j*s.b.Rows:]
	}
	more := after < s.b.Cols
	p.Room = &room[0]
	p.Next, p.NextStep = p.Room, 0
	switch {
	case s.packed && more:
		p.Next, p.NextStep = &room[wide*s.b.Rows], ValueSize*wide
	case s.packed:
	case !s.b.transposed:
		p.B, p.Pack = &s.b.Data[j], 1
		if more {
			p.Next, p.NextStep = &s.b.Data[after], p.BStep
		}
	case columns > narrow:
		s.transpose(room, wide, j, columns)
	default:
		s.transpose(room, narrow, j, columns)
	}
}

// transpose packs a panel of a transposed block into room.
func (s *panels) transpose(room Vector, width, j, columns int) {
	const most = 8
	step := ValueSize * s.b.Stride
	for n := 0; n < columns; n += most {
		s.tiler.Transpose(&room[n], ValueSize*width, &s.b.Data[(j+n)*s.b.Stride], step, min(most, columns-n), s.b.Rows)
	}
}
