// Package peer is the node that a service embeds to train one model together
// with others, with no server: it hands out a snapshot of the parameters, takes
// the gradient that the service computed on its own data, applies it, and now
// and then averages the model with one neighbour's, in the background.
//
//	p, err := peer.Start(ctx, peer.Config{Run: "digits", Params: params, Join: seeds})
//	...
//	err = p.Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) { ... })
//
// A peer that trains never waits for another: not for a slow one, not for a dead one, not
// for an exchange; but for the last steps of a run, which it leaves to whose they are for a few
// seconds at most. One that cannot reach anyone trains alone, says so in its
// log, and keeps trying.
//
// Sum, Max and Gather give all members the same bytes of what each brings, beside
// training or without it: see packages table and learn for what is made of that.
//
// An operator may pause, resume, stop and reschedule a run whose peers were given its
// id (Control, Operator); members tell each other how they fare (Digests).
//
// Limits of this version: one model per peer, in memory, as float32; a few
// members that poison the model are bounded, not stopped; members of a run see
// each other's parameters. Step belongs to one goroutine; everything else is safe for
// concurrent use.
//
// Where to go next: package tensor for parameters and their layout, package
// peertest to test a service with several peers in one process, package seam to
// bring a transport or membership of one's own, package averaging for who talks
// to whom. docs/ARCHITECTURE.md tells the life of an exchange.
package peer
