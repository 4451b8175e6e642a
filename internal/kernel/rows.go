package kernel

// The functions below work on a matrix of rows of len(row) values that follow one
// another without gaps. Others of its size may be the same matrix or not overlap;
// rows and sums overlap nothing.

// AddRows equals
//
//	for i := range x { x[i] += row[i%len(row)] }
func AddRows(x, row []float32) {
	for from, to := range pieces(len(x), len(row)) {
		addRows(x[from:to], row, (to-from)/len(row))
	}
}

// AddRowsRectify equals AddRows and Rectify.
func AddRowsRectify(x, row []float32) {
	for from, to := range pieces(len(x), len(row)) {
		addRowsRectify(x[from:to], row, (to-from)/len(row))
	}
}

// ScaleRows equals
//
//	for i := range dst { c := i%len(scale); dst[i] = float32(x[i] * scale[c]) + shift[c] }
func ScaleRows(dst, x, scale, shift []float32) {
	x, shift = x[:len(dst)], shift[:len(scale)]
	for from, to := range pieces(len(dst), len(scale)) {
		scaleRows(dst[from:to], x[from:to], scale, shift, (to-from)/len(scale))
	}
}

// ScaleRowsRectify equals ScaleRows and Rectify.
func ScaleRowsRectify(dst, x, scale, shift []float32) {
	x, shift = x[:len(dst)], shift[:len(scale)]
	for from, to := range pieces(len(dst), len(scale)) {
		scaleRowsRectify(dst[from:to], x[from:to], scale, shift, (to-from)/len(scale))
	}
}

// CombineRows equals
//
//	for i := range dst { c := i%len(shift); dst[i] = float32(x[i]*a[c]) + float32(y[i]*b[c]) + shift[c] }
func CombineRows(dst, x, y, a, b, shift []float32) {
	x, y, a, b = x[:len(dst)], y[:len(dst)], a[:len(shift)], b[:len(shift)]
	for from, to := range pieces(len(dst), len(shift)) {
		combineRows(dst[from:to], x[from:to], y[from:to], a, b, shift, (to-from)/len(shift))
	}
}

// SumRows equals
//
//	for i := range x { sum[i%len(sum)] += x[i] }
//
// summed in float64, in this order, and rounded once for each rowsPiece of values,
// so that every CPU gives the same bits.
func SumRows(sum, x []float32) {
	for from, to := range pieces(len(x), len(sum)) {
		sumRows(sum, x[from:to], (to-from)/len(sum))
	}
}

// SumProductRows equals
//
//	for i := range x {
//		sum[i%len(sum)] += float64(x[i])
//		product[i%len(sum)] += float64(x[i]) * float64(y[i])
//	}
//
// in this order: the products are exact, so every CPU gives the same bits.
func SumProductRows(sum, product []float64, x, y []float32) {
	y, product = y[:len(x)], product[:len(sum)]
	for from, to := range pieces(len(x), len(sum)) {
		sumProductRows(sum, product, x[from:to], y[from:to], (to-from)/len(sum))
	}
}

// SumSquareRows equals SumProductRows(sum, square, x, x).
func SumSquareRows(sum, square []float64, x []float32) {
	square = square[:len(sum)]
	for from, to := range pieces(len(x), len(sum)) {
		sumSquareRows(sum, square, x[from:to], (to-from)/len(sum))
	}
}

// rowsPiece is about how many values of a matrix one call works on: what a sum
// walks through once for each few columns should stay near the core.
const rowsPiece = 1 << 13

// pieces cuts whole rows off a matrix of length values.
func pieces(length, row int) func(yield func(from, to int) bool) {
	if row == 0 || length%row != 0 {
		panic("kernel: a matrix of broken rows")
	}
	step := row * max(1, rowsPiece/row)
	return func(yield func(from, to int) bool) {
		for from := 0; from < length; from += step {
			if !yield(from, min(from+step, length)) {
				return
			}
		}
	}
}
