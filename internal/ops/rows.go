package ops

import (
	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// AddRows adds row to each row of x: the biases of a layer to its outputs.
func AddRows(x, row tensor.Vector) {
	pictures("AddRows", len(x), len(row))
	kernel.AddRows(x, row)
}

// AddRowsRectify adds row to each row of x and sets to 0 what is then negative.
func AddRowsRectify(x, row tensor.Vector) {
	pictures("AddRowsRectify", len(x), len(row))
	kernel.AddRowsRectify(x, row)
}

// AddSumRows adds the sum of the rows of x to sum: the gradient over biases. Runs of
// a few thousand values are added up in float64, in their order.
func AddSumRows(sum, x tensor.Vector) {
	pictures("AddSumRows", len(x), len(sum))
	kernel.SumRows(sum, x)
}

// Rectify sets the negative values of x to 0. NaN stays.
func Rectify(x tensor.Vector) { kernel.Rectify(x) }

// RectifyGradient sets grad to 0 where out, which Rectify or AddRowsRectify gave, is
// not positive.
func RectifyGradient(grad, out tensor.Vector) {
	wantLen("RectifyGradient", len(grad), len(out))
	kernel.RectifyGradient(grad, out)
}
