package trainer

import (
	"time"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// local are the steps that a trainer makes for itself between two updates of the flock's model,
// which stays in the replica meanwhile.
type local struct {
	collective.Local
	outer optim.SGD
	model tensor.Vector // the flock's model after the steps so far
	steps int
	total int // samples in them
}

func newLocal(of collective.Local, values int) *local {
	return &local{Local: of, outer: optim.SGD{Momentum: of.Momentum, Nesterov: true}, model: make(tensor.Vector, values)}
}

// begin copies the model to x, at first from the replica.
func (l *local) begin(r *replica.Replica, x tensor.Vector) (waited time.Duration) {
	if l.steps == 0 {
		l.total = 0
		waited = r.Snapshot(l.model)
	}
	copy(x, l.model)
	return waited
}

// add adds a step of so many samples, and tells whether it was the last before an update.
func (l *local) add(delta tensor.Vector, samples int) (last bool) {
	tensor.Add(l.model, delta)
	l.steps++
	l.total += max(samples, 1)
	return l.steps >= l.Every
}

// gradient writes what all steps came to as a gradient at the model of the flock, x, of which a
// step of length 1 leads to where they led. The change of statistics is their value there.
func (l *local) gradient(grad, x tensor.Vector, statistics []part) {
	l.steps = 0
	tensor.ScaledDifference(grad, 1, x, l.model)
	for _, p := range statistics {
		tensor.Scale(p.of(grad), -1)
	}
}

// forget begins anew, for another model.
func (l *local) forget() {
	l.outer.Reset()
	l.steps = 0
}
