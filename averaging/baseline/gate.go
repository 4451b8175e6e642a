package baseline

import (
	"fmt"

	"github.com/seed-97356399/murmuration/topology"
)

// MaxStaleness bounds how far ahead of the slowest a worker may be.
const MaxStaleness = 1024

// Gate decides, at the server, who may begin its next iteration.
type Gate interface {
	// Together tells whether the pushes of all workers make one update; otherwise each push
	// makes one.
	Together() bool
	// Lets tells whether a worker may go on. It is asked when the worker has pushed, and, while
	// the answer is no, after each push or death of another. The board counts the push already.
	Lets(worker topology.PeerID, pushed bool, board *Board) bool
}

// BSP is bulk synchronous: all push, one update is made, and all go on. In lock-step no
// worker is ahead.
type BSP struct{}

func (BSP) Together() bool { return true }

func (BSP) Lets(worker topology.PeerID, _ bool, board *Board) bool { return board.Lead(worker) == 0 }

// ASP is asynchronous: no worker waits, however stale its parameters.
type ASP struct{}

func (ASP) Together() bool { return false }

func (ASP) Lets(topology.PeerID, bool, *Board) bool { return true }

// SSP is stale synchronous: a worker may begin an iteration while it is at most staleness
// pushes ahead of the slowest.
type SSP struct{ staleness int }

// NewSSP makes a gate whose leads are never more than staleness.
func NewSSP(staleness int) (SSP, error) {
	if staleness < 0 || staleness > MaxStaleness {
		return SSP{}, fmt.Errorf("SSP gate: staleness %d: want 0 to %d", staleness, MaxStaleness)
	}
	return SSP{staleness: staleness}, nil
}

func (g SSP) Together() bool { return false }

func (g SSP) Lets(worker topology.PeerID, _ bool, board *Board) bool {
	return board.Lead(worker) <= g.staleness
}
