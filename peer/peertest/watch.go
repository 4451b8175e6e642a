package peertest

import (
	"fmt"
	"io"
)

// Defaults of Watch.
const (
	// DefaultEvaluate is the number of peers that are evaluated.
	DefaultEvaluate = 32
	// DefaultGlance is their number at each point of the curve.
	DefaultGlance = 4
)

// Watch says what of a simulation is measured.
type Watch struct {
	// Evaluate is how many peers are evaluated at the end, spread evenly over those
	// who are there. Default: DefaultEvaluate.
	Evaluate int
	// Points is the number of points of the curve, at even progress. 0 is no curve.
	Points int
	// Glance is how many peers are evaluated at each, on a part of the data. Default:
	// DefaultGlance.
	Glance int
	// Target is the accuracy whose time is noted, and Stop ends the run there.
	Target float64
	Stop   bool
	// Record receives a recording of the world; see ReadRecording. Nil is none.
	Record io.Writer
	// Point is called with each point of the curve as it is measured.
	Point func(Point)
}

func (w Watch) withDefaults() Watch {
	if w.Evaluate == 0 {
		w.Evaluate = DefaultEvaluate
	}
	if w.Glance == 0 {
		w.Glance = DefaultGlance
	}
	return w
}

func (w Watch) validate() error {
	if w.Evaluate < 0 || w.Points < 0 || w.Glance < 0 {
		return fmt.Errorf("Watch has Evaluate %d, Points %d and Glance %d: none may be negative", w.Evaluate, w.Points, w.Glance)
	}
	return nil
}
