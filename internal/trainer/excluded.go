package trainer

import (
	"math"

	"github.com/seed-97356399/murmuration/tensor"
)

// part is a run of values of the model.
type part struct{ offset, length int }

func (p part) of(v tensor.Vector) tensor.Vector { return v[p.offset : p.offset+p.length] }

// excluded are the ranges of a model whose steps the optimizer does not make: frozen ranges
// have no step, and the step of a statistic is its value in the gradient.
type excluded struct {
	trained    []part // all others
	frozen     []part
	statistics []part
	local      []part        // those of statistics that are never exchanged
	held       tensor.Vector // changes of statistics, while the optimizer has the gradient
}

func newExcluded(layout *tensor.Layout) *excluded {
	a, room := &excluded{}, 0
	for i := range layout.Count() {
		at := layout.At(i)
		p := part{at.Offset, at.Len}
		switch {
		case at.Sharing == tensor.Frozen:
			a.frozen = append(a.frozen, p)
		case at.Kind != tensor.Statistic:
			a.train(p)
		default:
			a.statistics, room = append(a.statistics, p), room+p.length
			if at.Sharing == tensor.Local {
				a.local = append(a.local, p)
			}
		}
	}
	a.held = make(tensor.Vector, room)
	return a
}

// train adds a part to the trained ones, and merges adjacent parts.
func (a *excluded) train(p part) {
	if n := len(a.trained); n > 0 && a.trained[n-1].offset+a.trained[n-1].length == p.offset {
		a.trained[n-1].length += p.length
		return
	}
	a.trained = append(a.trained, p)
}

// hide saves the changes of statistics, and sets them and frozen ranges to zero for the
// optimizer, so that its state covers only the rest.
func (a *excluded) hide(grad, x tensor.Vector) {
	next := a.held
	for _, p := range a.statistics {
		next = next[copy(next, p.of(grad)):]
	}
	for _, parts := range [][]part{a.statistics, a.frozen} {
		for _, p := range parts {
			clear(p.of(grad))
			clear(p.of(x))
		}
	}
}

// restore sets the step of statistics to the saved changes, and that of frozen ranges to zero.
func (a *excluded) restore(delta tensor.Vector) {
	next := a.held
	for _, p := range a.statistics {
		next = next[copy(p.of(delta), next):]
	}
	for _, p := range a.frozen {
		clear(p.of(delta))
	}
}

// takeLocal moves the changes of local statistics from a gradient to delta, which is then
// zero elsewhere. It returns whether there are such statistics.
func (a *excluded) takeLocal(grad, delta tensor.Vector) bool {
	if len(a.local) == 0 {
		return false
	}
	clear(delta)
	for _, p := range a.local {
		copy(p.of(delta), p.of(grad))
		clear(p.of(grad))
	}
	return true
}

// norm is the norm of a step over the trained parts.
func (a *excluded) norm(delta tensor.Vector) float64 {
	sum := 0.0
	for _, p := range a.trained {
		sum += tensor.SumSquares(p.of(delta))
	}
	return math.Sqrt(sum)
}

// distance is the distance of two models over the trained parts.
func (a *excluded) distance(x, y tensor.Vector) float64 {
	sum := 0.0
	for _, p := range a.trained {
		sum += tensor.SquaredDistance(p.of(x), p.of(y))
	}
	return math.Sqrt(sum)
}
