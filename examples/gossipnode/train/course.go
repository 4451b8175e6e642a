package train

import "math"

const (
	// A loss is far above if it exceeds farAbove times the loss at the start, or of guessing if
	// that is more. Noise does not reach it, nor do the first steps with a learning rate near
	// the highest one that works.
	farAbove = 4
	// startSteps is the number of first steps; the least of their losses is the loss at the start.
	startSteps = 8
	// awaySteps is the excess of steps far above over other steps at which the loss runs away.
	awaySteps = 64
)

// course tells whether a loss runs away, though it is finite.
type course struct {
	steps, above int
	start        float64
	away         bool // until above is 0 again
}

// see takes the loss of a step, for a model of so many classes. It reports true once, when the loss has begun to run away.
func (c *course) see(loss float64, classes int) (ranAway bool) {
	if c.steps++; c.steps <= startSteps {
		if c.steps == 1 || loss < c.start {
			c.start = loss
		}
		return false
	}
	if loss > farAbove*max(c.start, math.Log(float64(max(classes, 2)))) {
		c.above = min(c.above+1, awaySteps)
	} else {
		c.above = max(c.above-1, 0)
	}
	was := c.away
	c.away = c.above == awaySteps || was && c.above > 0
	return c.away && !was
}
