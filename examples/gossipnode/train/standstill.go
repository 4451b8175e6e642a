package train

import (
	"time"

	"go.uber.org/zap"
)

const (
	// A gap between two steps is a standstill if it is at least that long, and so many
	// times as long as a step takes: then the others may have given this peer up.
	leastStandstill = 10 * time.Second
	standstillSteps = 20
)

// standstill notices that the process did nothing for a while: it was stopped, or its
// machine was asleep. The zero value is ready.
type standstill struct {
	last    time.Time
	steps   int
	longest time.Duration // of the standstills
	working time.Duration // the steps together, standstills aside
	told    bool
}

// step notes the end of a step. It takes the clock on the wall, which goes on while a
// machine sleeps.
func (s *standstill) step(now time.Time) {
	now = now.Round(0)
	if !s.last.IsZero() {
		gap := now.Sub(s.last)
		if typical := s.working / time.Duration(max(s.steps, 1)); gap >= leastStandstill && s.steps > 0 && gap >= standstillSteps*typical {
			s.longest = max(s.longest, gap)
		} else {
			s.steps++
			s.working += max(gap, 0)
		}
	}
	s.last = now
}

// alone tells, once, for how long this peer stood still, if all that it has seen have
// gone since.
func (s *standstill) alone(members, most int) (stood time.Duration, news bool) {
	if s.told || s.longest == 0 || members > 1 || most <= 1 {
		return 0, false
	}
	s.told = true
	return s.longest, true
}

// warn says what a user should know whose process has slept through the end: the peer
// cannot, since there is nobody to ask.
func (s *standstill) warn(log *zap.Logger, members, most int) {
	if stood, news := s.alone(members, most); news {
		log.Warn("this process stood still, and all others have gone: it trains on alone, from the model it had. If they have finished the run, end this peer (Ctrl-C) and take the model of one of them",
			zap.Duration("stood_still", stood), zap.Int("others", most-1))
	}
}
