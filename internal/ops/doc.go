// Package ops holds the operations that neural networks for pictures are made
// of, each with its gradient, on flat vectors of float32.
//
// A picture is its rows of pixels from the top, each pixel its channels; several
// pictures follow one another. An operation takes any number of pictures, which
// follows from the length of its arguments, so a model may run a whole batch
// through each operation or a few pictures at a time through several of them,
// while they are in the cache. What a gradient needs from the forward pass (the
// places of maxima, the statistics of a normalization) goes into vectors of the
// caller's.
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
// Gradients over parameters are added to what is there, so that parts of a batch
// add up; gradients over inputs replace what is there. Vectors must not overlap
// unless a comment says that they may be the same. Lengths that do not fit are an
// error of the program and panic.
//
// A convolution by 1×1 and a fully connected layer are matrix products: see
// Multiplier in package tensor.
//
// Types that hold room for their work are for one goroutine at a time; the room
// does not grow with the number of pictures. Nothing here allocates after a
// type's constructor. Results depend on the arguments alone; those of different
// CPUs differ by the rounding of sums, at most.
package ops
