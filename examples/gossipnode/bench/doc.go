// Package bench is the command that measures what limits training on this machine. Each
// figure stands beside a reference that was measured in the same run, in turn with it,
// and what counts is the median of the rounds' ratios: a machine that is busy or slow
// changes the times more than those.
//
//	exchange  two processes average a model, beside moving the same bytes
//	step      a gradient step of each model, beside gonum
//
// Kernels, codecs and the copy of a model that a joiner makes are go test's benchmarks: make bench.
//
// Limits: everything is on one machine, so networks are loopback; only Linux tells
// processor time, peak memory and congestion control.
//
// Each measurement has a folder of its own; measure is what they have in common. An
// exchange takes most: in its folder measure.go leads, node.go is either process,
// partner.go the one that is started (child.go), peer.go and machine.go the peers, load.go
// and order.go the references.
package bench
