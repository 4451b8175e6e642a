// Package quant names the codecs that turn slices of a model into bytes and back, and says
// which parts of a model take which codec.
//
// A Policy is what most programs need: peer.Config takes one. A Codec, by its name or by
// its number on the network, both fixed for good, codes single slices:
//
//	 1 raw    float32: exact, 4 bytes per value
//	 2 bf16   bfloat16: relative error <= 2^-8, 2 bytes per value
//	 3 fp16   IEEE 754 half: relative error <= 2^-11 from 2^-14 to 65504, 2 bytes
//	 4 int8   whole steps, of which 127 make the largest value of a block: 1 byte
//	16 to 31 latticeA+B, A of 4, 5, 6, 8 bits and B of 1, 3, 4, 8 bits a value
//
// A lattice codec codes a value by the lowest bits of its grid index; a receiver with a
// near value completes the index. So the closer the models, the finer the grid. The answer
// is the difference in whole grid steps, whose error shrinks with the difference.
// docs/CODECS.md has the bytes.
//
// An exchange stays exact in sum whatever the codec: both peers add and subtract
// the same decoded difference. A codec's error costs only convergence.
//
// Received bytes are not trusted: decoding checks a whole code before it writes to its
// destination, and never yields a value that is not finite.
package quant
