package baseline

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// DSSP is dynamic stale synchronous (Zhao et al., 2019): like SSP at its lower bound, but
// the fastest worker may be granted further iterations, so many that, by the last
// intervals, it ends when the slowest pushes.
//
// The controller printed in the paper ignores earlier grants: a worker that has used up its
// grant asks again, and leads of 61 to 109 were seen with a bound of 15. Here a grant never
// exceeds what is left below the upper bound, which therefore holds. A worker without a
// known interval is granted nothing.
type DSSP struct{ lower, upper int }

// NewDSSP makes a gate with leads of at most lower without grants, and never more than
// upper.
func NewDSSP(lower, upper int) (*DSSP, error) {
	var faults []error
	if lower < 0 || upper > MaxStaleness {
		faults = append(faults, fmt.Errorf("bounds %d and %d: want 0 to %d", lower, upper, MaxStaleness))
	}
	if lower > upper {
		faults = append(faults, fmt.Errorf("the lower bound %d exceeds the upper, %d", lower, upper))
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("DSSP gate: %w", errors.Join(faults...))
	}
	return &DSSP{lower: lower, upper: upper}, nil
}

func (g *DSSP) Together() bool { return false }

func (g *DSSP) Lets(worker topology.PeerID, pushed bool, board *Board) bool {
	lead, w := board.Lead(worker), board.of(worker)
	switch {
	case pushed && w.granted > 0 && lead <= g.upper:
		w.granted--
		return true
	case lead <= g.lower:
		return true
	case !pushed || !board.Fastest(worker):
		return false
	}
	grant := min(controller(worker, board, g.upper-g.lower), g.upper-lead)
	// The answer also lets this iteration begin, which is the first of the grant.
	w.granted = max(grant, 0)
	return grant > 0
}

// controller is how many iterations, up to most, the worker should make to end as near as
// possible to a push of the slowest, if both go on as in their last interval.
func controller(worker topology.PeerID, board *Board, most int) int {
	fast, slow := board.of(worker), board.of(board.Slowest())
	if fast.interval == 0 || slow.interval == 0 {
		return 0
	}
	best, nearest := 0, time.Duration(-1)
	for r := range most + 1 {
		own := fast.pushed + time.Duration(r)*fast.interval
		for k := range most + 1 {
			apart := slow.pushed + time.Duration(k+1)*slow.interval - own
			if apart = max(apart, -apart); nearest < 0 || apart < nearest {
				best, nearest = r, apart
			}
		}
	}
	return best
}
