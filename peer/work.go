package peer

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/orders"
)

// work is what the flock is to do, and how far it is with that.
type work struct {
	flock  *flock.Flock
	orders *orders.Orders
	last   func() // lets no further step be taken
	log    *zap.Logger
}

// finished tells whether the flock has done its work.
func (w work) finished() bool {
	if _, stopped := w.orders.Stopped(); stopped {
		return true
	}
	target := w.target()
	return target > 0 && w.flock.Total() >= target
}

// may tells whether this peer may take another step now, or first hears how far the others are.
func (w work) may(now time.Time) bool {
	target := w.target()
	return target == 0 || w.flock.May(target, now)
}

// conclude notes that the run is over, after the last step. It reports true to the first to
// find that, who must tell the machine.
func (w work) conclude() bool {
	w.last()
	if !w.flock.Finish() {
		return false
	}
	w.flock.Wait(true) // the others may, for its last steps
	w.orders.Release()
	_, stopped := w.orders.Stopped()
	w.log.Info("the run is over", zap.Bool("stopped_by_operator", stopped),
		zap.Uint64("own_steps", w.flock.Steps()), zap.Uint64("flock_steps", w.flock.Total()))
	return true
}

// progress is the share of the flock's work that is done, 0 if there is no end.
func (w work) progress() float64 {
	target := w.target()
	if target == 0 {
		return 0
	}
	return min(float64(w.flock.Total())/float64(target), 1)
}

// target is the number of steps that the flock is to take, 0 if there is no end.
func (w work) target() uint64 {
	return w.orders.At(w.flock.Total()).Target(w.flock.Participants())
}

// runOver is ErrRunOver, with the reason if there is another than the work done.
func (w work) runOver() error {
	why, stopped := w.orders.Stopped()
	switch {
	case !stopped:
		return ErrRunOver
	case why == "":
		return fmt.Errorf("%w: the operator has stopped it", ErrRunOver)
	}
	return fmt.Errorf("%w: the operator has stopped it: %s", ErrRunOver, why)
}
