// Package rate is the learning rate over a run. It knows no vectors, so that an operator's
// program, which only says what the rate is to be, links none.
package rate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
)

// Shape is the course of a learning rate after its warm-up.
type Shape uint8

const (
	// Cosine falls from the full rate to zero, or to Floor, along half a cosine (Loshchilov &
	// Hutter, 2017). With no end of the run known it stays at the full rate.
	Cosine Shape = iota
	// Constant stays at the full rate.
	Constant
	// Stepped multiplies the rate by Factor at each of the milestones At.
	Stepped
)

// DefaultRate is the learning rate of a zero Schedule.
const DefaultRate = 0.05

// Schedule is a learning rate over the progress of the whole flock: peers of
// unequal speed are at the same rate at the same time. Progress goes from 0 to 1;
// where the run has no end it stays 0.
type Schedule struct {
	// Rate is the full rate. Default: DefaultRate.
	Rate float64
	// Warmup is the share of the run, 0 to 1, over which the rate rises from near
	// zero to the full rate, in a straight line.
	Warmup float64
	// Shape is the course after the warm-up.
	Shape Shape
	// At are the milestones of Stepped: growing shares of the run.
	At []float64
	// Factor is what a milestone multiplies the rate by. Default: 0.1.
	Factor float64
	// Floor is the share of the full rate, 0 to 1, at which Cosine ends and below which
	// Stepped does not go. An operator's schedule says nothing of it: that of the run stays.
	Floor float64 `json:",omitempty"`

	from, to float64 // of Part; to of 0 is the whole
}

// Part is the part of a course from one share of it to another, 0 to 1: of a run that trains on what another has left,
// at the rate that was reached. An operator's schedule has none.
func (s Schedule) Part(from, to float64) Schedule {
	s.from, s.to = from, to
	return s
}

// At a progress in the warm-up the rate is at least this share of the full one,
// so that a first step moves.
const warmupFloor = 0.01

// RateAt is the learning rate at a progress from 0 to 1.
func (s Schedule) RateAt(progress float64) float64 {
	s = s.withDefaults()
	progress = min(max(progress, 0), 1)
	if s.to > 0 {
		progress = s.from + float64(progress*(s.to-s.from))
	}
	if progress < s.Warmup {
		return s.Rate * max(warmupFloor, progress/s.Warmup)
	}
	switch s.Shape {
	case Stepped:
		rate := s.Rate
		for _, at := range s.At {
			if progress >= at {
				rate *= s.Factor
			}
		}
		return max(rate, s.Floor*s.Rate)
	case Constant:
		return s.Rate
	}
	if s.Warmup >= 1 {
		return s.Rate
	}
	cosine := 0.5 * (1 + math.Cos(math.Pi*(progress-s.Warmup)/(1-s.Warmup)))
	return s.Rate * (s.Floor + float64((1-s.Floor)*cosine))
}

// Validate reports all faults of the schedule at once.
func (s Schedule) Validate() error {
	var faults []error
	if !(s.Rate >= 0) || math.IsInf(s.Rate, 0) {
		faults = append(faults, fmt.Errorf("Rate is %v: want a positive number", s.Rate))
	}
	if !(s.Warmup >= 0 && s.Warmup <= 1) {
		faults = append(faults, fmt.Errorf("Warmup is %v: want a share of the run, 0 to 1", s.Warmup))
	}
	if s.Shape > Stepped {
		faults = append(faults, fmt.Errorf("Shape is %d: want Cosine, Constant or Stepped", s.Shape))
	}
	if !(s.Factor >= 0 && s.Factor <= 1) {
		faults = append(faults, fmt.Errorf("Factor is %v: want 0 to 1", s.Factor))
	}
	if !(s.Floor >= 0 && s.Floor <= 1) {
		faults = append(faults, fmt.Errorf("Floor is %v: want a share of the rate, 0 to 1", s.Floor))
	}
	if (s.from != 0 || s.to != 0) && !(s.from >= 0 && s.from < s.to && s.to <= 1) {
		faults = append(faults, fmt.Errorf("Part from %v to %v: want shares of the course, 0 to 1, in order", s.from, s.to))
	}
	for i, at := range s.At {
		if !(at >= 0 && at <= 1) || i > 0 && at <= s.At[i-1] {
			faults = append(faults, fmt.Errorf("At is %v: want growing shares of the run, 0 to 1", s.At))
			break
		}
	}
	return errors.Join(faults...)
}

func (s Schedule) withDefaults() Schedule {
	s.Rate = cmp.Or(s.Rate, DefaultRate)
	s.Factor = cmp.Or(s.Factor, 0.1)
	return s
}
