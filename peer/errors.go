// Package peer is the node that a service embeds to train one model together
// with others, with no server: it hands out a snapshot of the parameters, takes
// the gradient that the service computed on its own data, applies it, and now
// and then averages the model with one neighbour's, in the background.
//
//	p, err := peer.Start(ctx, peer.Config{Run: "digits", Params: params, Join: seeds})
//	...
//	err = p.Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) { ... })
//
// A peer that trains never waits for another: not for a slow one, not for a dead one, not for
// an exchange. The one exception is the last steps of a run: it leaves them to the peers whose
// turn it is, for a few seconds at most. A peer that cannot reach anyone trains alone, says so
// in its log, and keeps trying.
//
// A service that sums, serves or watches before it trains, or without training, is a Node, made
// by Join; Node.Train starts its training. A Peer is a node with a trainer from the beginning.
//
// Sum, Max and Gather combine what each member brings, with the same bytes for all members,
// with or without training. Packages table and learn are built on them.
//
// An operator may pause, resume, stop and reschedule a run whose peers were given the
// operator's id (Control, Operator); members send each other digests of their state (Digests).
//
// Limits of this version: one model per peer, or a stage of one (package
// pipeline), in memory, as float32; a few
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

// Errors that a caller handles, to be tested with errors.Is.
var (
	// ErrRunOver: the flock has done its work. The peer goes on serving exchanges
	// until Close.
	ErrRunOver = errors.New("the run is over")
	// ErrConfig: the Config given to Start is not valid; to try again does not help.
	ErrConfig = errors.New("peer configuration")
	// ErrClosed: the peer has been closed.
	ErrClosed = errors.New("the peer is closed")
)

// ErrCoordinatorLost is what a *HaltedError unwraps to when the server that was named never comes,
// others follow one that this peer cannot reach, or it cannot send its own numbers as coordinator.
var ErrCoordinatorLost = errors.New("the peer that coordinates the run is lost")

// HaltedError says that the training algorithm cannot go on. The gradient of the step was
// not used.
type HaltedError struct {
	// Reason is the algorithm's.
	Reason averaging.Reason
}

// Error names the reason and what to do about it.
func (e *HaltedError) Error() string {
	return fmt.Sprintf("the algorithm cannot go on: %s. See whether this peer reaches the others, and start it again, from its checkpoint if there is one", e.Reason)
}

// Unwrap returns the sentinel error of the reason.
func (e *HaltedError) Unwrap() error {
	if e.Reason == averaging.NoCoordinator {
		return ErrCoordinatorLost
	}
	return nil
}
