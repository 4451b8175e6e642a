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
// A service that sums, serves or watches before it trains, or without it, is a Node, made by
// Join; Node.Train has it train as well. A Peer is a node and its trainer from the first.
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
// peertest to test a service with several peers in one process, package transport to
// bring a transport or membership of one's own, package averaging for who talks
// to whom. docs/ARCHITECTURE.md tells the life of an exchange.
package peer

import (
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/averaging"
)

// What a caller of a peer handles, to be tested with errors.Is.
var (
	// ErrRunOver: the flock has done its work. The peer goes on serving exchanges
	// until Close.
	ErrRunOver = errors.New("the run is over")
	// ErrConfig: Start was given a Config that cannot be; to try again does not help.
	ErrConfig = errors.New("peer configuration")
	// ErrClosed: the peer has been closed.
	ErrClosed = errors.New("the peer is closed")
)

// ErrCoordinatorLost is what a *HaltedError unwraps to when the peer is lost that coordinates
// the run or serves its parameters.
var ErrCoordinatorLost = errors.New("the peer that coordinates the run is lost")

// HaltedError says that the algorithm which the peers train with cannot go on. The
// gradient of the step was not used.
type HaltedError struct {
	// Reason is the algorithm's.
	Reason averaging.Reason
}

// Error names the reason and what to do about it.
func (e *HaltedError) Error() string {
	return fmt.Sprintf("the algorithm cannot go on: %s. Start all peers again, from a checkpoint if there is one; AD-PSGD goes on without any one of them", e.Reason)
}

// Unwrap gives the sentinel of the reason.
func (e *HaltedError) Unwrap() error {
	if e.Reason == averaging.NoCoordinator {
		return ErrCoordinatorLost
	}
	return nil
}
