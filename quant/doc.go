// Package quant turns slices of a model into bytes and back.
//
// A Codec is what an exchange is coded with: one Coder for the active peer's
// slice, and one for the difference with which the passive peer answers. Codecs
// are known by a name for people (ByName) and by a number for the network
// (ByID), both fixed for good:
//
//	1 raw    float32, little-endian: exact, 4 bytes per value
//	2 bf16   bfloat16, little-endian: relative error <= 2^-8, 2 bytes per value
//	3        reserved for fp16
//	4        reserved for int8
//	16...    reserved for lattice codecs
//
// An exchange stays exact in sum whatever the codec: both peers add and subtract
// the same decoded difference. A codec's error costs only convergence.
//
// Bytes that arrive are not trusted: Decode checks all of a code before it
// touches its destination, and never yields a value that is not finite.
//
// Coders work on single slices; what to send, and when, is package peer's.
package quant
