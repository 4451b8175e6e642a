package nn

import "github.com/seed-97356399/murmuration/tensor"

// AddRows adds row to each row of x: the biases of a layer to its outputs.
func AddRows(x, row tensor.Vector) {
	for i := range pictures("AddRows", len(x), len(row)) {
		tensor.Add(x[i*len(row):][:len(row)], row)
	}
}

// AddRowsRectify adds row to each row of x and sets to 0 what is then negative.
func AddRowsRectify(x, row tensor.Vector) {
	AddRows(x, row)
	Rectify(x)
}

// AddSumRows adds the sum of the rows of x to sum: the gradient over biases. The
// rows are added up in float64, in their order.
func AddSumRows(sum, x tensor.Vector) {
	n := pictures("AddSumRows", len(x), len(sum))
	for c := range sum {
		total := 0.0
		for i := range n {
			total += float64(x[i*len(sum)+c])
		}
		sum[c] += float32(total)
	}
}

// Rectify sets to 0 what is not positive. (NaN too.)
func Rectify(x tensor.Vector) {
	for i, v := range x {
		if !(v > 0) {
			x[i] = 0
		}
	}
}

// RectifyGradient sets grad to 0 where out, which Rectify or AddRowsRectify gave,
// is not positive.
func RectifyGradient(grad, out tensor.Vector) {
	wantLen("RectifyGradient", len(grad), len(out))
	for i, v := range out {
		if !(v > 0) {
			grad[i] = 0
		}
	}
}
