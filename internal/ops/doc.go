// Package ops has the operations of neural networks for pictures, each with its gradient, on flat vectors of float32.
//
// A picture is its rows of pixels from the top, each pixel its channels; several pictures follow each other. The
// length of its arguments tells an operation the number of pictures. So a model may run a whole batch through each
// operation, or a few pictures at a time through several operations, while they are in the cache. Forward passes
// store the data for gradients (the places of maxima, the statistics of a normalization) in vectors of the caller.
//
//	conv := ops.NewConvolution(ops.Shape{Height: 28, Width: 28, Channels: 1}, 16, 1)
//	conv.Load(weights)                  // once a step
//	conv.Forward(y, x)
//	pool.Forward(z, places, y)
//	ops.AddRowsRectify(z, bias)          // a maximum and a rectifier may change places
//	...
//	ops.RectifyGradient(dz, z)
//	ops.AddSumRows(dbias, dz)
//	pool.Gradient(dy, places, dz)
//	conv.AddWeightGradient(dweights, x, dy)
//
// Gradients over parameters are added to the old values, so that parts of a batch add up; gradients over inputs
// replace the old values. Vectors must not overlap unless a comment allows it. Lengths that do not fit are an error
// of the program: the operation panics.
//
// A convolution by 1×1 and a fully connected layer are matrix products: see
// Multiplier in package tensor.
//
// Types with memory for intermediate results are for one goroutine at a time; this memory does not grow with the
// number of pictures. Only constructors allocate. Results depend on the arguments alone; different CPUs differ at
// most by the rounding of sums.
package ops
