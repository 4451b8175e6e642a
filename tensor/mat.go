package tensor

import "fmt"

// Matrix is a view of a vector, row by row: element (i, j) is
// Data[i*Stride+j]. Nothing beyond the elements is read or written, so several
// views may share a vector.
//
// Rows of a matrix that is only read may overlap (Stride < Cols): each row of the
// matrix whose product is a convolution begins a pixel after the one before.
type Matrix struct {
	Data       Vector
	Rows, Cols int
	Stride     int // values from one row to the next of Data's

	transposed bool // Rows and Cols are of the view, Stride is of Data
}

// NewMatrix returns the dense matrix of data, which holds rows*cols values.
func NewMatrix(rows, cols int, data Vector) Matrix {
	if rows < 0 || cols < 0 || len(data) != rows*cols {
		panic(fmt.Sprintf("tensor: NewMatrix of %d by %d over %d values", rows, cols, len(data)))
	}
	return Matrix{Data: data, Rows: rows, Cols: cols, Stride: cols}
}

// T returns the transposed view: element (i, j) of it is element (j, i) of m.
func (m Matrix) T() Matrix {
	m.Rows, m.Cols, m.transposed = m.Cols, m.Rows, !m.transposed
	return m
}

// lines returns the number and the length of the rows of Data.
func (m Matrix) lines() (count, length int) {
	if m.transposed {
		return m.Cols, m.Rows
	}
	return m.Rows, m.Cols
}

// part returns the view of rows by cols elements from (i, j) on.
func (m Matrix) part(i, j, rows, cols int) Matrix {
	at := i*m.Stride + j
	if m.transposed {
		at = j*m.Stride + i
	}
	m.Rows, m.Cols = rows, cols
	if count, length := m.lines(); count == 0 || length == 0 {
		m.Data = nil
	} else {
		m.Data = m.Data[at : at+(count-1)*m.Stride+length]
	}
	return m
}

// check panics unless the elements of m lie in its data, in rows of their own
// unless m is only read.
func (m Matrix) check(name string, read bool) {
	count, length := m.lines()
	switch {
	case m.Rows < 0 || m.Cols < 0 || m.Stride < 0:
	case count == 0 || length == 0:
		return
	case !read && count > 1 && m.Stride < length:
	case (len(m.Data)-length)/max(m.Stride, 1) < count-1 && m.Stride > 0 || len(m.Data) < length:
	default:
		return
	}
	panic(fmt.Sprintf("tensor: MatMul with %s of %d by %d, stride %d, over %d values",
		name, m.Rows, m.Cols, m.Stride, len(m.Data)))
}

// scale multiplies the elements by factor; 0 overwrites them.
func (m Matrix) scale(factor float32) {
	count, length := m.lines()
	for i := range count {
		line := m.Data[i*m.Stride : i*m.Stride+length]
		if factor == 0 {
			clear(line)
		} else {
			Scale(line, factor)
		}
	}
}
