package ops

import (
	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// AddRows adds row to each row of x, as biases are added to the outputs of a layer.
func AddRows(x, row tensor.Vector) {
	pictures("AddRows", len(x), len(row))
	kernel.AddRows(x, row)
}

// AddRowsRectify adds row to each row of x and sets negative results to 0.
func AddRowsRectify(x, row tensor.Vector) {
	pictures("AddRowsRectify", len(x), len(row))
	kernel.AddRowsRectify(x, row)
}

// AddSumRows adds the sum of the rows of x to sum: the gradient over biases. It adds up a few thousand values at a
// time in float64, in their order.
func AddSumRows(sum, x tensor.Vector) {
	pictures("AddSumRows", len(x), len(sum))
	kernel.SumRows(sum, x)
}

// Rectify sets the negative values of x to 0 and keeps NaN.
func Rectify(x tensor.Vector) { kernel.Rectify(x) }

// RectifyGradient sets grad to 0 where out, the output of Rectify or AddRowsRectify, is not positive.
func RectifyGradient(grad, out tensor.Vector) {
	wantLen("RectifyGradient", len(grad), len(out))
	kernel.RectifyGradient(grad, out)
}
