package pipeline

import (
	"fmt"
	"math"
	"sync"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// usual is how large errors of the next stage are, so that a member there that sends much larger ones, which would spoil a
// whole step or make it fail, is not believed. Safe for concurrent use.
type usual struct {
	mu   sync.Mutex
	seen int
	mean float64 // of the squares
}

const (
	// learnedFrom is how many errors are looked at before any are refused, and memory how many count in the mean, about.
	learnedFrom = 8
	memory      = 64
	// mostTimes is how many times as large as usual errors may be, and mostLoss bounds a loss.
	mostTimes = 100
	mostLoss  = 1e6
)

// check refuses what cannot be.
func (u *usual) check(loss float64, errors tensor.Vector) error {
	square := tensor.SumSquares(errors) / float64(max(len(errors), 1))
	u.mu.Lock()
	defer u.mu.Unlock()
	most := u.mean * mostTimes * mostTimes
	if math.Abs(loss) > mostLoss || u.seen >= learnedFrom && square > most {
		return fmt.Errorf("a loss of %g, and errors of %g where %g is usual: %w", loss, math.Sqrt(square), math.Sqrt(u.mean), wire.ErrMessage)
	}
	u.seen++
	u.mean += (square - u.mean) / float64(min(u.seen, memory))
	return nil
}
