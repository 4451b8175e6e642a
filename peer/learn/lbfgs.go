package learn

import (
	"context"
	"math"

	"gonum.org/v1/gonum/floats"
)

// L-BFGS, and OWL-QN (Andrew and Gao, 2007) where there is an L1 penalty. It is written here because all members must
// take the same steps to the last bit: a member that rounds differently would ask for sums that the others do not.
// gonum's optimize adds in an order that depends on the processor. Here float64() prevents compilers from fusing a
// product with a sum.

const (
	memorySize  = 10   // pairs of steps from which the curvature is estimated
	maxHalvings = 30   // of one step's length
	enoughFall  = 1e-4 // least fall of the value, as a part of what the slope predicts (Armijo's condition)
)

// Descent says how an iterative fit ended.
type Descent struct {
	Rounds int `json:"rounds"` // iterations; sums over the flock are a few more
	// Converged is false if the iterations ended before the tolerance was reached: the model
	// can be used, and more iterations would improve it a little.
	Converged bool `json:"converged"`
}

// minimum searches for the parameters with the least value.
type minimum struct {
	// value returns the function's value and gradient, summed over the flock: the same bytes at all members. If
	// members leave, it becomes the function of those left, whose minimum is found all the same.
	value func(ctx context.Context, parameters []float64) (float64, []float64, error)
	// curvature estimates the second derivative by each parameter; positive.
	curvature []float64
	// l1 is the penalty of each parameter's absolute value; nil is none.
	l1         []float64
	tolerance  float64 // of the largest entry of the gradient
	iterations int

	steps, turns [][]float64 // changes of parameters and of gradients, oldest first
}

// search starts at zero and gives the parameters.
func (s *minimum) search(ctx context.Context) ([]float64, Descent, error) {
	at := make([]float64, len(s.curvature))
	value, gradient, err := s.value(ctx, at)
	if err != nil {
		return nil, Descent{}, err
	}
	value += s.absolutes(at)
	for round := range s.iterations {
		slope := s.slope(at, gradient)
		if largest(slope) <= s.tolerance {
			return at, Descent{round, true}, nil
		}
		direction := s.direction(slope)
		next, v, g, err := s.line(ctx, at, value, slope, direction)
		if err != nil {
			return nil, Descent{}, err
		}
		if next == nil && len(s.steps) > 0 {
			s.steps, s.turns = nil, nil // tries once more, along the slope
			continue
		}
		if next == nil { // the remaining differences are rounding
			return at, Descent{round, true}, nil
		}
		s.remember(minus(next, at), minus(g, gradient))
		at, value, gradient = next, v, g
	}
	return at, Descent{s.iterations, largest(s.slope(at, gradient)) <= s.tolerance}, nil
}

// absolutes is the value of the L1 penalty.
func (s *minimum) absolutes(at []float64) float64 {
	sum := 0.0
	for i, l1 := range s.l1 {
		sum += float64(l1 * math.Abs(at[i]))
	}
	return sum
}

// slope is the gradient including the L1 penalty. The penalty has a kink at 0: there, slope takes the steeper side
// that goes down, or 0.
func (s *minimum) slope(at, gradient []float64) []float64 {
	if s.l1 == nil {
		return gradient
	}
	slope := make([]float64, len(at))
	for i, g := range gradient {
		switch l1 := s.l1[i]; {
		case at[i] > 0 || at[i] == 0 && g < -l1:
			slope[i] = g + l1
		case at[i] < 0 || at[i] == 0 && g > l1:
			slope[i] = g - l1
		}
	}
	return slope
}

// direction is the negated slope times an estimate of the inverse of the second derivatives, by the two-loop
// recursion.
func (s *minimum) direction(slope []float64) []float64 {
	q := make([]float64, len(slope))
	for i, g := range slope {
		q[i] = -g
	}
	share := make([]float64, len(s.steps))
	for k := len(s.steps) - 1; k >= 0; k-- {
		share[k] = dot(s.steps[k], q) / dot(s.steps[k], s.turns[k])
		add(q, -share[k], s.turns[k])
	}
	scale := 1.0
	if k := len(s.steps) - 1; k >= 0 {
		flat := 0.0
		for i, y := range s.turns[k] {
			flat += float64(y*y) / s.curvature[i]
		}
		scale = dot(s.steps[k], s.turns[k]) / flat
	}
	for i := range q {
		q[i] = q[i] * scale / s.curvature[i]
	}
	for k := range s.steps {
		add(q, share[k]-dot(s.turns[k], q)/dot(s.steps[k], s.turns[k]), s.steps[k])
	}
	if s.l1 != nil { // with an L1 penalty a parameter moves down its own slope or not at all
		for i := range q {
			if q[i]*slope[i] >= 0 {
				q[i] = 0
			}
		}
	}
	return q
}

// line takes the longest of the steps 1, ½, ¼ … in a direction that lowers the value enough. It returns a nil point
// if no step does.
func (s *minimum) line(ctx context.Context, at []float64, value float64, slope, direction []float64) ([]float64, float64, []float64, error) {
	for halving := range maxHalvings {
		length := math.Ldexp(1, -halving)
		next := make([]float64, len(at))
		for i := range at {
			next[i] = at[i] + float64(length*direction[i])
			if s.l1 != nil && s.l1[i] > 0 && crosses(next[i], at[i], slope[i]) {
				next[i] = 0
			}
		}
		promise := dot(slope, minus(next, at))
		if !(promise < 0) {
			return nil, 0, nil, nil
		}
		v, g, err := s.value(ctx, next)
		if err != nil {
			return nil, 0, nil, err
		}
		if v += s.absolutes(next); v < value && v <= value+float64(enoughFall*promise) {
			return next, v, g, nil
		}
	}
	return nil, 0, nil, nil
}

// crosses tells whether a parameter has left its side of 0. From 0, its side is where the slope goes down.
func crosses(next, at, slope float64) bool {
	side := at
	if side == 0 {
		side = -slope
	}
	return next*side <= 0
}

// remember keeps a step if the function is convex along it.
func (s *minimum) remember(step, turn []float64) {
	if !(dot(step, turn) > 1e-14*dot(turn, turn)) {
		return
	}
	s.steps, s.turns = append(s.steps, step), append(s.turns, turn)
	if len(s.steps) > memorySize {
		s.steps, s.turns = s.steps[1:], s.turns[1:]
	}
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i] * b[i])
	}
	return sum
}

// add computes a += factor·b.
func add(a []float64, factor float64, b []float64) {
	for i := range a {
		a[i] += float64(factor * b[i])
	}
}

func minus(a, b []float64) []float64 { return floats.SubTo(make([]float64, len(a)), a, b) }

func largest(v []float64) float64 { return floats.Norm(v, math.Inf(1)) }
