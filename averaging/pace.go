package averaging

import (
	"math"
	"time"
)

// Limits of the automatic pace.
const (
	// maxEvery is the ceiling of H, in local steps, however slow the link.
	maxEvery = 256
	// costShare is the share of the trainer's time that exchanges may cost in processor
	// time. Users are promised a tenth; it is half of that, since a passive in an unequal
	// flock serves up to two actives.
	costShare = 0.05
	// speedRange bounds how far Pace.BySpeed changes H, either way.
	speedRange = 4
	// smoothing is the weight of a new sample in the running means.
	smoothing = 0.2
)

// pace measures how long steps and exchanges take and derives H, the number of
// local steps between two exchanges that a peer initiates.
type pace struct {
	step     mean          // time from one step to the next
	exchange mean          // time from proposal to the end of an exchange
	cost     mean          // processor time of an exchange at this peer
	bytes    mean          // that an exchange moves
	atLeast  time.Duration // duration of the longest exchange broken off since one was completed
	lastStep time.Duration
	moved    float64 // since the last exchange, in lengths of a step
	speed    float64 // relative to the flock's mean, 0 if not known
	control  controller
}

// stepped records a step that ended at now, one of several reported at once if between is not 0.
func (p *pace) stepped(now, between time.Duration) {
	switch {
	case between > 0:
		p.step = mean{value: float64(between), known: true}
	case p.lastStep > 0 && now > p.lastStep:
		p.step.add(float64(now - p.lastStep))
	}
	p.lastStep = now
}

// exchanged records an outbound exchange.
func (p *pace) exchanged(took, cost time.Duration, bytes uint64) {
	p.exchange.add(float64(took))
	p.cost.add(float64(cost))
	p.bytes.add(float64(bytes))
	p.atLeast = 0
}

// brokeOff records an outbound exchange that broke off before it was complete. Its duration
// is no sample for the mean, since a stalling partner may be the cause; it is a lower bound
// until an exchange completes. Without it, a link on which no exchange ends in time would
// look like an unmeasured one.
func (p *pace) brokeOff(lasted time.Duration) {
	p.atLeast = max(p.atLeast, lasted)
}

// affordable is the H at which exchanges move no more than so many bytes an hour; 0 means
// no bound.
func (p *pace) affordable(bytesPerHour float64) int {
	if bytesPerHour <= 0 || p.step.value <= 0 {
		return 0
	}
	steps := math.Ceil(p.bytes.value / bytesPerHour * float64(time.Hour) / p.step.value)
	return int(min(steps, math.MaxInt32))
}

// every is the H at which communication stays hidden behind computation and
// costs no more than costShare of it: max(⌈exchange/step⌉, ⌈cost/(share·step)⌉),
// at most maxEvery. Partial exchanges end when the next is due, whatever H is, so only their cost
// counts. Before anything is measured it is 1.
func (p *pace) every(partial bool) int {
	if !p.step.known || p.step.value <= 0 {
		return 1
	}
	hidden := math.Ceil(max(p.exchange.value, float64(p.atLeast)) / p.step.value)
	if partial {
		hidden = 1
	}
	cheap := math.Ceil(p.cost.value / (costShare * p.step.value))
	return int(min(max(hidden, cheap, 1), maxEvery))
}

// sharing is the least H at which exchanges last for no more than that share of the time.
func (p *pace) sharing() int {
	if p.step.value <= 0 {
		return 1
	}
	return int(min(math.Ceil(max(p.exchange.value, float64(p.atLeast))/(acrossShare*p.step.value)), math.MaxInt32))
}

// lasting is the time that so many steps take, 0 if it is not known.
func (p *pace) lasting(steps int) time.Duration {
	return time.Duration(float64(steps) * p.step.value)
}

// scaled is H for a peer of this speed, given the H of a peer of mean speed.
func (p *pace) scaled(every int) int {
	if !(p.speed > 0) {
		return every
	}
	factor := min(max(p.speed, 1.0/speedRange), speedRange)
	return int(min(max(math.Round(float64(every)*factor), 1), math.MaxInt32))
}

// mean is an exponentially weighted running mean that starts at its first sample. A sample
// counts as at most ten times the current value, so that one stall of the machine does not
// set the pace for the next twenty.
type mean struct {
	value float64
	known bool
}

const outlier = 10

func (m *mean) add(sample float64) {
	if !m.known {
		m.value, m.known = sample, true
		return
	}
	if m.value > 0 {
		sample = min(sample, outlier*m.value)
	}
	m.value += smoothing * (sample - m.value)
}
