package tensor

import "fmt"

// Matrix is a view of a vector, row by row: element (i, j) is
// Data[i*Stride+j]. Only the elements are read or written, so that several views
// may share a vector.
//
// Rows of a matrix that is only read may overlap (Stride < Cols). A convolution uses this as a product of matrices:
// each row begins one pixel after the row before.
type Matrix struct {
	Data       Vector
	Rows, Cols int
	Stride     int // values from the start of a row to that of the next, in the untransposed matrix

	transposed bool // Rows and Cols are those of the view, Stride is that of Data
}

// NewMatrix returns the dense matrix of data, which holds rows*cols values.
func NewMatrix(rows, cols int, data Vector) Matrix {
	if rows < 0 || cols < 0 || len(data) != rows*cols {
		panic(fmt.Sprintf("tensor: NewMatrix of %d by %d over %d values", rows, cols, len(data)))
	}
	return Matrix{Data: data, Rows: rows, Cols: cols, Stride: cols}
}

// T returns the transposed view: its element (i, j) is element (j, i) of m.
func (m Matrix) T() Matrix {
	m.Rows, m.Cols, m.transposed = m.Cols, m.Rows, !m.transposed
	return m
}

// lines returns the number and the length of the rows of the untransposed matrix.
func (m Matrix) lines() (count, length int) {
	if m.transposed {
		return m.Cols, m.Rows
	}
	return m.Rows, m.Cols
}

// part returns the view of rows by cols elements from (i, j) on, all of which must exist.
func (m Matrix) part(i, j, rows, cols int) Matrix {
	m.Rows, m.Cols = rows, cols
	if m.transposed {
		i, j = j, i
	}
	count, length := m.lines()
	m.Data = m.Data[i*m.Stride+j:][:(count-1)*m.Stride+length]
	return m
}

func (m Matrix) scale(factor float32) {
	count, length := m.lines()
	for i := range count {
		line := m.Data[i*m.Stride:][:length]
		if factor == 0 {
			clear(line)
		} else {
			Scale(line, factor)
		}
	}
}

// check panics unless all elements lie in Data and, if written is true, rows do not overlap.
func (m Matrix) check(name string, written bool) {
	count, length := m.lines()
	sizes := m.Rows >= 0 && m.Cols >= 0 && m.Stride >= 0
	if sizes && (count == 0 || length == 0) {
		return
	}
	fits := sizes && length <= len(m.Data) && (m.Stride == 0 || count-1 <= (len(m.Data)-length)/m.Stride)
	if !fits || written && count > 1 && m.Stride < length {
		panic(fmt.Sprintf("tensor: MatMul: %s is %d by %d with stride %d over %d values",
			name, m.Rows, m.Cols, m.Stride, len(m.Data)))
	}
}
