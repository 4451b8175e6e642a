// Package quant turns slices of a model into bytes and back.
//
// A Codec is what an exchange is coded with: one coder for the active peer's slice,
// and one for the difference with which the passive peer answers. Codecs are known
// by a name for people (ByName) and by a number for the network (ByID), both fixed
// for good; docs/CODECS.md has the bytes.
//
//	 1 raw    float32: exact, 4 bytes per value
//	 2 bf16   bfloat16: relative error <= 2^-8, 2 bytes per value
//	 3 fp16   IEEE 754 half: relative error <= 2^-11 from 2^-14 to 65504, 2 bytes
//	 4 int8   whole steps, of which 127 make the largest value of a block: 1 byte
//	16 to 31 latticeA+B, A of 4, 5, 6, 8 bits and B of 1, 3, 4, 8 bits a value
//
// Simple codecs have two Coders. A lattice codec codes a value by the lowest bits of
// its place on a grid, which a receiver that is near completes (Lattice); so its
// grid can be as fine as the models are close. The range of what is near is agreed
// per block of BlockLen values (RangeCode, Track); blocks beyond it are detected and
// sent again (Pass). The answer is the difference in whole steps (Steps), whose
// error shrinks with it. See Lattice.Answer for one exchange's arithmetic.
//
// An exchange stays exact in sum whatever the codec: both peers add and subtract
// the same decoded difference. A codec's error costs only convergence.
//
// Bytes that arrive are not trusted: decoding checks all of a code before it
// touches its destination, and never yields a value that is not finite.
//
// Coders work on single slices, have no state and allocate nothing; what to send,
// and when, is package peer's.
package quant
