// Package kernel holds the loops that the arithmetic of this module spends its
// time in, over plain []float32 and []byte.
//
// The comment of each function is the scalar loop that it equals. Elementwise
// functions give the same bits on every CPU: every product is rounded to
// float32 before it is added (the language lets a compiler fuse x*y+z, and
// some targets do; an explicit conversion forbids it). Reductions are summed
// in float64 by several accumulators, so they may differ from the plain loop,
// and between CPUs, by a relative 1e-12 of the sum of the terms' magnitudes.
// Convolutions are summed in float32, as their comments say.
//
// Which NaN comes out of an operation on NaNs is not promised; that one does, is.
//
// Every function has a plain Go twin (files ending in _go.go) that is compiled
// on every platform, and is all there is elsewhere than on amd64 and under the
// build tag purego. On amd64 there are variants in assembly for AVX2 and for
// AVX-512, of which the best that the CPU has is chosen once (level_amd64.go);
// they must pass the twin's tests. The command in folder gen, a module of its
// own, writes the files ending in _gen.go and .s: to change a kernel, change its
// body there. Add a kernel with its twin, its line in the table of gen and its
// lines in variant_test.go and runs_test.go. (Those for pictures and rows, which walk
// in loops of their own, are in files that begin with picture_, and in
// picture_variant_test.go; those that sum along rows, such as softmax, in files that
// begin with row_, and in row_variant_test.go. Their sums have the same bits on every
// CPU.) Slices of 16 MB or more that some of these variants write without reading go
// past the cache.
//
// Products of matrices are the exception (gemm.go): the microkernels are reached by
// their Tiler, one panel at a time, and have no twin here, since package tensor,
// which cuts products into panels, has gonum's product to fall back on.
//
// Slices that are named together must have equal lengths and must either be the
// same slice or not overlap at all, unless a comment asks for more. Nothing
// here is checked beyond what keeps memory safe: package tensor, which is the
// public face of these loops, checks lengths. Functions do not allocate, hold
// no state, and may be called from several goroutines on different slices.
package kernel
