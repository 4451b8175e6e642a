package sim

import (
	"time"

	"github.com/seed-97356399/murmuration/averaging"
)

// Trainer is what the peers of a world compute.
type Trainer interface {
	// Duration is how long a step of a peer takes. Steps are numbered from 0; one
	// takes at least a microsecond.
	Duration(peer, step int) time.Duration
	// Step fills delta with what a step changes of the parameters. x is a snapshot
	// from the beginning of the step: exchanges may have changed the parameters
	// since. Neither slice may be kept.
	Step(peer, step int, x, delta []float32)
}

// minStep keeps a world from standing still: whatever a trainer says, time passes.
const minStep = time.Microsecond

// tooLate tells whether the step in the making is lost: of a machine that makes one model
// of all, none is applied once the run is over.
func (p *peer) tooLate() bool { return p.pools && p.world.over }

// step begins the peer's next step, unless the training is over.
func (p *peer) step() {
	w := p.world
	if w.over || p.stepping || p.gone || p.halted {
		return
	}
	p.stepping = true
	p.sized()
	p.replica.Snapshot(p.snapshot)
	if w.gradients != nil {
		w.owed = append(w.owed, p)
	}
	w.queue.After(max(w.config.Trainer.Duration(p.index, p.counts.Steps), minStep), func() {
		if p.gone {
			return
		}
		if w.gradients != nil {
			p.ended()
			return
		}
		w.config.Trainer.Step(p.index, p.counts.Steps, p.snapshot, p.delta)
		p.stepping = false
		if p.tooLate() {
			return
		}
		p.replica.Add(p.delta)
		p.counts.Steps++
		p.tell(averaging.Event{Kind: averaging.StepDone})
	})
}
