// Package tensor holds a model's values as one flat vector of float32, with arithmetic, the
// optimizers' steps, names and shapes for its parts, and reading and writing of safetensors
// files.
//
// The parts:
//
//   - Vector is the values. Functions on vectors allocate nothing, and give the
//     same bits on every CPU unless they reduce to one number.
//   - Layout names the ranges of a vector and gives them shapes; it never
//     changes. Peers that train together have layouts with equal hashes.
//   - Params is a vector with its layout: a model.
//   - Matrix is a view of a vector by rows and columns; a Multiplier multiplies two,
//     as fast as the processor can.
//
// It is not a tensor library: there is no broadcasting, no gradient, and no element
// type but float32. A service brings its own model code and shares its values
// through Params.Vector.
//
// Nothing here locks. A Layout may be used from any number of goroutines; the caller must
// guard a Vector or Params.
//
// Package quant turns vectors into bytes for the network; package peer trains
// and exchanges them.
package tensor
