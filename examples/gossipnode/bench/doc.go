// Package bench is the command that measures what limits training on this machine. Each figure is measured in
// alternation with a reference, and reported as the median of the rounds' ratios: a busy or slow machine changes
// times more than ratios.
//
//	exchange  two processes average a model, beside moving the same bytes
//	step      a gradient step of each model, beside gonum
//
// Kernels, codecs and the copy of a model that a joiner makes are go test's benchmarks: make bench.
//
// Limits: everything is on one machine, so networks are loopback. Only Linux reports processor time, peak memory and
// congestion control.
//
// Each measurement has a folder; package measure has the parts they share. In folder exchange, measure.go runs the
// measurement, node.go is either process, partner.go the process that is started (by child.go), peer.go and
// machine.go the peers, load.go and order.go the references.
package bench
