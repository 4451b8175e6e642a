// Package coding turns slices of a model into bytes and back: the machinery of which
// package quant is the face.
//
// A Codec is what an exchange is coded with: one coder for the active peer's slice,
// and one for the difference with which the passive peer answers. Codecs are known
// by a name for people (ByName) and by a number for the network (ByID), both fixed
// for good; docs/CODECS.md has the bytes.
//
// Simple codecs have two Coders. A lattice codec codes a value by the lowest bits of
// its place on a grid, which a receiver that is near completes (Lattice); so its
// grid can be as fine as the models are close. The range of what is near is agreed
// per block of BlockLen values (RangeCode, Track); blocks beyond it are detected and
// sent again (Pass). The answer is the difference in whole steps (Steps), whose
// error shrinks with it. See Lattice.Answer for one exchange's arithmetic.
//
// A Plan says which codec the slices of each joint layer of a model take.
//
// Bytes that arrive are not trusted: decoding checks all of a code before it
// touches its destination, and never yields a value that is not finite. Coders have
// no state and allocate nothing.
package coding
