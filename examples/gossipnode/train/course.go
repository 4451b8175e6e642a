package train

import "math"

const (
	// farAbove is how many times the loss at the start, or that of guessing if it is more, a
	// loss is when something is wrong with it: noise, and the first steps of a rate that is
	// near the highest which works, are below.
	farAbove = 4
	// startSteps are the first steps, whose least loss is that of the start.
	startSteps = 8
	// awaySteps is how many more steps of the last ones must be far above than not.
	awaySteps = 64
)

// course tells whether a loss runs away, though it is finite.
type course struct {
	steps, above int
	start        float64
	away         bool // until as many steps were not far above
}

// see takes the loss of a step over so many classes. It reports true when that has run away, once.
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
