package baseline

import (
	"fmt"

	"github.com/seed-97356399/murmuration/topology"
)

// MaxStaleness bounds how far ahead of the slowest a worker may be let.
const MaxStaleness = 1024

// Gate decides, at the server, who may begin its next iteration.
type Gate interface {
	// Together tells whether the pushes of all workers make one update; else each makes
	// one by itself.
	Together() bool
	// Pushed tells whether a worker may go on that has just pushed. The board counts
	// that push.
	Pushed(worker topology.PeerID, board *Board) bool
	// Waiting tells whether a worker may go on that was not let, after another's push
	// or death.
	Waiting(worker topology.PeerID, board *Board) bool
	// Forget: the worker has left, and is another if it comes again.
	Forget(worker topology.PeerID)
}

// BSP is bulk synchronous: all push, one update is made of it, all go on. In lock-step
// nobody is ahead.
type BSP struct{}

func (BSP) Together() bool { return true }

func (BSP) Pushed(worker topology.PeerID, board *Board) bool { return board.Lead(worker) == 0 }

func (BSP) Waiting(worker topology.PeerID, board *Board) bool { return board.Lead(worker) == 0 }

func (BSP) Forget(topology.PeerID) {}

// ASP is asynchronous: nobody waits, however stale its parameters.
type ASP struct{}

func (ASP) Together() bool { return false }

func (ASP) Pushed(topology.PeerID, *Board) bool { return true }

func (ASP) Waiting(topology.PeerID, *Board) bool { return true }

func (ASP) Forget(topology.PeerID) {}

// SSP is stale synchronous: a worker may begin an iteration while it is no more than so
// many pushes ahead of the slowest.
type SSP struct{ staleness int }

// NewSSP makes a gate whose leads are never more than staleness.
func NewSSP(staleness int) (SSP, error) {
	if staleness < 0 || staleness > MaxStaleness {
		return SSP{}, fmt.Errorf("SSP gate: staleness %d: want 0 to %d", staleness, MaxStaleness)
	}
	return SSP{staleness: staleness}, nil
}

func (g SSP) Together() bool { return false }

func (g SSP) Pushed(worker topology.PeerID, board *Board) bool {
	return board.Lead(worker) <= g.staleness
}

func (g SSP) Waiting(worker topology.PeerID, board *Board) bool {
	return board.Lead(worker) <= g.staleness
}

func (SSP) Forget(topology.PeerID) {}
