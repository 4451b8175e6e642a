package replica

import (
	"sort"
	"sync"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// maxRank bounds the rows of factors, and so what a member can have others compute: of a value, so many products.
const maxRank = 512

// matrix is a range of the model: a row for each output of a layer, a column for each input. Its gradient over the rows of a
// batch is the product of two factors, the errors at the outputs and the inputs, which together may be far fewer numbers
// (sufficient factors, Xie et al., 2016).
type matrix struct{ offset, rows, cols int }

func (m matrix) end() int { return m.offset + m.rows*m.cols }

// touched are the rows that have values from one on, up to another.
func (m matrix) touched(from, to int) (first, end int) {
	return (from - m.offset) / m.cols, (to - m.offset + m.cols - 1) / m.cols
}

// Factors are those of the matrices in Gradient, as far as they are known; nil takes none. They are safe for concurrent use.
type Factors struct {
	matrices []matrix // of the layout, in order
	sliceLen int

	mu       sync.Mutex
	known    []product // by matrix
	gradient uint64    // grows with each gradient
}

// product is a gradient in two factors, which have a row for each of the batch.
type product struct {
	rank           int
	inputs, errors tensor.Vector
}

func newFactors(layout *tensor.Layout, sliceLen int) *Factors {
	f := &Factors{sliceLen: sliceLen}
	for i := range layout.Count() {
		if at := layout.At(i); len(at.Shape) == 2 && at.Kind == tensor.Dense && at.Sharing == tensor.Shared {
			f.matrices = append(f.matrices, matrix{offset: at.Offset, rows: at.Shape[0], cols: at.Shape[1]})
		}
	}
	f.known = make([]product, len(f.matrices))
	return f
}

// pays tells whether factors of so many rows are worth sending for what a matrix has of a range of values. Errors at an output whose
// row lies in two slices are sent for both; those of a slice have room in a frame.
func (f *Factors) pays(m matrix, rank, from, to int) bool {
	from, to = max(from, m.offset), min(to, m.end())
	first, end := m.touched(from, to)
	sent := m.cols + end - first + (to-from)/f.sliceLen + 1
	fits := m.cols <= wire.MaxSliceLen && rank*(f.sliceLen/m.cols+2) <= wire.MaxSliceLen
	return to > from && rank > 0 && rank <= maxRank && fits && rank*sent < to-from
}

// at is the first matrix that has a value, or lies beyond it.
func (f *Factors) at(value int) int {
	return sort.Search(len(f.matrices), func(i int) bool { return f.matrices[i].end() > value })
}

// Put adds rows to the factors of the matrix at an offset: what Gradient has there is the sum of their products over all
// rows. Where they are no fewer numbers, or fit no matrix, Gradient is sent as it is.
func (f *Factors) Put(offset int, inputs, errors tensor.Vector) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.at(offset)
	if i == len(f.matrices) || f.matrices[i].offset != offset {
		return
	}
	m, known := f.matrices[i], &f.known[i]
	rows := len(errors) / m.rows
	if known.rank += rows; len(errors) != rows*m.rows || len(inputs) != rows*m.cols {
		known.rank = maxRank + 1
	}
	if f.pays(m, known.rank, m.offset, m.end()) {
		known.inputs, known.errors = append(known.inputs, inputs...), append(known.errors, errors...)
	}
}

// Forget is called before the factors of another gradient are put.
func (f *Factors) Forget() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gradient++
	for i := range f.known {
		k := &f.known[i]
		k.rank, k.inputs, k.errors = 0, k.inputs[:0], k.errors[:0]
	}
}
