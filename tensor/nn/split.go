package nn

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Cost is what a part of a model takes of the member that holds it.
type Cost struct {
	// Seconds is how long a micro-batch takes, forward and back.
	Seconds float64
	// Across is how many bytes go on to the next part, and come back, for a micro-batch.
	Across float64
	// Memory is how many bytes it holds: parameters, the optimizer's vectors, values on their way.
	Memory float64
}

// ErrSplit: there is no such split.
var ErrSplit = errors.New("nn: the model cannot be split so")

// Split finds the cuts of a model into stages, for Stages: those with which the slowest stage, or link between two, takes
// the least time for a micro-batch, which a pipeline that is full takes too. Costs are those of the parts, link is the
// rate of the links between stages in bytes a second (0: nothing crosses slowly), memory bounds the bytes of a stage (0:
// unbounded). Among equal splits the one with the earliest cuts is returned, so all members find the same.
//
// It is the dynamic program of PipeDream (Narayanan et al., 2019) for stages of equal members. It returns ErrSplit,
// with what would do, if no split fits the memory.
func Split(costs []Cost, stages int, link, memory float64) (cuts []int, err error) {
	n := len(costs)
	if stages < 1 || stages > n {
		return nil, fmt.Errorf("%w: %d stages of %d parts: want 1 to %d", ErrSplit, stages, n, n)
	}
	for i, c := range costs {
		for _, x := range []float64{c.Seconds, c.Across, c.Memory} {
			if !(x >= 0 && x <= math.MaxFloat64) {
				return nil, fmt.Errorf("%w: part %d costs %+v: want numbers of at least 0", ErrSplit, i, c)
			}
		}
	}
	s := splitter{costs: costs, link: link, memory: memory}
	if cuts = s.cuts(stages); cuts == nil {
		s.memory = 0
		s.least = func(from, to int) float64 { return s.sum(from, to, func(c Cost) float64 { return c.Memory }) }
		return nil, fmt.Errorf("%w: %d stages of at most %.3g bytes: want stages of %.3g, or more of them", ErrSplit, stages, memory, s.worst(s.cuts(stages)))
	}
	return cuts, nil
}

// splitter finds the split of which the worst stage is least.
type splitter struct {
	costs        []Cost
	link, memory float64
	least        func(from, to int) float64 // what is made least instead of the time
}

func (s *splitter) sum(from, to int, of func(Cost) float64) (sum float64) {
	for _, c := range s.costs[from:to] {
		sum += of(c)
	}
	return sum
}

// stage is the time of a stage with these parts, and of its link onwards; infinite if it has not the memory.
func (s *splitter) stage(from, to int) float64 {
	if s.least != nil {
		return s.least(from, to)
	}
	if s.memory > 0 && s.sum(from, to, func(c Cost) float64 { return c.Memory }) > s.memory {
		return math.Inf(1)
	}
	seconds := s.sum(from, to, func(c Cost) float64 { return c.Seconds })
	if to < len(s.costs) && s.link > 0 {
		seconds = max(seconds, s.costs[to-1].Across/s.link)
	}
	return seconds
}

// worst is the time of the slowest stage.
func (s *splitter) worst(cuts []int) (worst float64) {
	from := 0
	for _, to := range append(slices.Clone(cuts), len(s.costs)) {
		worst, from = max(worst, s.stage(from, to)), to
	}
	return worst
}

// cuts is the best split into so many stages, nil if there is none.
func (s *splitter) cuts(stages int) []int {
	n := len(s.costs)
	best := make([][]float64, stages+1) // of the parts from an index on, in so many stages
	ends := make([][]int, stages+1)     // where the first of these stages ends
	for k := range best {
		best[k], ends[k] = slices.Repeat([]float64{math.Inf(1)}, n+1), make([]int, n+1)
	}
	best[0][n] = 0
	for k := 1; k <= stages; k++ {
		for from := range n {
			for to := from + 1; to <= n; to++ {
				if worst := max(s.stage(from, to), best[k-1][to]); worst < best[k][from] {
					best[k][from], ends[k][from] = worst, to
				}
			}
		}
	}
	if math.IsInf(best[stages][0], 1) {
		return nil
	}
	cuts := make([]int, 0, stages-1)
	for k, at := stages, 0; k > 1; k-- {
		at = ends[k][at]
		cuts = append(cuts, at)
	}
	return cuts
}
