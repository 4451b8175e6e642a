// Package coding turns slices of a model into bytes and back. It is the implementation of package quant.
//
// A Codec codes an exchange: it has one coder for the active peer's slice, and one for the difference with which the
// passive peer answers. Codecs have a name for people (ByName) and a number for the network (ByID). Neither ever
// changes; docs/CODECS.md has the bytes.
//
// Simple codecs have two Coders. A lattice codec codes a value by the lowest bits of its index on a grid; a receiver
// with a near value finds the rest (Lattice). So the closer the models, the finer the grid. Both sides agree on the
// range of near values for each block of BlockLen values (RangeCode, Track). Blocks beyond their range are detected
// and sent again (Pass). The answer is the difference in whole steps (Steps), whose error shrinks with the
// difference. Lattice.Answer has the arithmetic of one exchange.
//
// A Plan says which codec codes the slices of each joint layer of a model.
//
// Received bytes are not trusted: decoding checks a whole code before it writes to its destination, and never returns
// a value that is not finite. Coders have no state and allocate nothing.
package coding
