package averaging

import (
	"cmp"
	"math"
)

// Settings of the consensus controller.
const (
	// controlEvery is the number of outbound exchanges between two decisions, and controlShare the
	// share of the run after which there is one in any case, once there was an exchange: peers that
	// exchange seldom have few in all.
	controlEvery, controlShare = 20, 0.1
	// calibrated is the progress of the run up to which the controller learns what
	// distance is usual, and does nothing.
	calibrated = 0.05
	// earlyUntil ends the first phase, and lateFrom begins the last one, in which models should be closer.
	earlyUntil, lateFrom = 0.2, 0.8
	// tighter is the target in these two phases, as a share of the usual distance.
	tighter = 0.25
	// controlRange bounds how far the controller changes H, either way.
	controlRange = 16
)

// controller keeps the models of a flock as close as the phase of the run needs: close
// early, where distance costs accuracy permanently (Kong et al., 2021), and late, where
// further gains come from agreement; between, the distance may be larger. It compares the
// consensus distance, which exchanges measure, with how far models move apart between two
// exchanges: the length of a step times the root of H.
type controller struct {
	squared   mean // squared distances between partners
	stride    mean // length of a step
	usual     mean // ratio of the two at the beginning
	progress  float64
	exchanges int     // since the last decision
	decided   float64 // progress at the last decision
	factor    float64 // by which H is multiplied; 0 is 1
}

// stepped records a step of length stride.
func (c *controller) stepped(stride, progress float64) {
	if stride > 0 && stride <= math.MaxFloat64 {
		c.stride.add(stride)
	}
	c.progress = progress
}

// exchanged records an outbound exchange between models at this distance, made every so
// many steps.
func (c *controller) exchanged(distance float64, every int) {
	if !(distance >= 0 && distance <= math.MaxFloat64) || c.stride.value <= 0 {
		return
	}
	c.squared.add(distance * distance)
	// Half of the mean squared distance is the mean squared distance from the flock's mean.
	ratio := math.Sqrt(c.squared.value/2) / (c.stride.value * math.Sqrt(float64(every)))
	if c.progress < calibrated || !c.usual.known {
		c.usual.add(ratio)
		c.decided = c.progress
		return
	}
	if c.exchanges++; c.exchanges < controlEvery && c.progress < c.decided+controlShare {
		return
	}
	c.exchanges, c.decided = 0, c.progress
	aim := c.usual.value
	if c.progress < earlyUntil || c.progress >= lateFrom {
		aim *= tighter
	}
	switch {
	case ratio > aim:
		c.factor = max(c.scale()/2, 1.0/controlRange)
	case ratio < aim/2:
		c.factor = min(c.scale()*2, controlRange)
	}
}

// scale is the factor for H.
func (c *controller) scale() float64 { return cmp.Or(c.factor, 1) }
