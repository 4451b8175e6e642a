package sim

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
)

// GradientTrainer is a Trainer that tells gradients and steps apart: machines that
// average gradients need that, and gradients of several peers can be computed at once.
// Of a Trainer that is one, Step is never called.
type GradientTrainer interface {
	Trainer
	// Gradient fills grad with the mean gradient at x over the peer's next samples,
	// and returns their number. It is called once for each step of a peer, in order,
	// but maybe before the step ends or another peer's that began earlier; and with
	// World.Fork for several peers at the same time, though not for two by the same
	// worker. So what it depends on may change with calls for the same peer only.
	Gradient(worker, peer, step int, x, grad []float32) (samples int)
	// Delta fills delta with what the peer's optimizer makes of a gradient at x. The
	// rate is that at progress, 0 to 1, of the run, or the peer's own if that is 0.
	Delta(peer int, progress float64, x, grad, delta []float32)
	// Progress is how much of the run is done, as a peer sees it, 0 to 1.
	Progress(peer int) float64
}

// Forgetter is a GradientTrainer whose optimizers remember past gradients.
type Forgetter interface {
	// Forget has the peer's optimizer forget them.
	Forget(peer int)
}

// Batcher is a GradientTrainer whose batches can be of any size.
type Batcher interface {
	// SetBatch is called before Duration with what the machine wants the peer's next
	// batch to have, if that is not 0.
	SetBatch(peer, batch int)
}

// sized lets the machine choose the size of the next batch.
func (p *peer) sized() {
	if p.sizer == nil || p.world.batcher == nil {
		return
	}
	if n := p.sizer.Batch(); n > 0 {
		p.world.batcher.SetBatch(p.index, n)
	}
}

// MaxWorkers bounds the goroutines that compute gradients.
const MaxWorkers = 64

// Fork lets so many goroutines compute gradients from now on, each time until all that
// can be computed by then is done. It changes nothing but the time that the world takes.
func (w *World) Fork(workers int) { w.workers = min(max(workers, 1), MaxWorkers) }

// compute sees to it that the gradient of a peer's step is there: with it, those of all
// steps that have begun, which depend on nothing that may yet happen.
func (w *World) compute(p *peer) {
	if p.computed {
		return
	}
	var next atomic.Int64
	work := func(worker int) {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(w.owed) {
				return
			}
			p := w.owed[i]
			if p.gone {
				continue
			}
			p.samples = w.gradients.Gradient(worker, p.index, p.counts.Steps, p.snapshot, p.delta)
			p.computed = true
		}
	}
	var group sync.WaitGroup
	for worker := 1; worker < min(w.workers, len(w.owed)); worker++ {
		group.Go(func() { work(worker) })
	}
	work(0)
	group.Wait()
	w.owed = w.owed[:0]
}

// ended takes the step of a peer in, whose gradient a GradientTrainer computes.
func (p *peer) ended() {
	w := p.world
	w.compute(p)
	p.computed, p.stepping = false, false
	if p.averages {
		if err := p.replica.PutGradient(p.delta, float64(p.samples)); err != nil {
			p.halted = true
			p.broke(p.index, fmt.Errorf("step %d: %w", p.counts.Steps, err))
			return
		}
		p.waiting = true
		p.tell(averaging.Event{
			Kind: averaging.GradientDone, Samples: p.samples, Progress: w.gradients.Progress(p.index),
			Initial: p.counts.Steps == 0 && !p.copied,
		})
		return
	}
	if p.tooLate() {
		return
	}
	w.gradients.Delta(p.index, 0, p.snapshot, p.delta, w.step)
	p.replica.Add(w.step)
	p.counts.Steps++
	p.tell(averaging.Event{Kind: averaging.StepDone, Progress: w.gradients.Progress(p.index)})
}

// proceed lets the trainer go on: a step of a GradientMachine counts when it is told.
func (p *peer) proceed() {
	if p.waiting {
		p.waiting = false
		p.counts.Steps++
	}
	p.step()
}

// update makes a step of the sum of gradients.
func (p *peer) update(a averaging.Action) {
	w := p.world
	if trainer, remembers := w.gradients.(Forgetter); remembers && a.Forget {
		trainer.Forget(p.index)
	}
	p.replica.Drain(w.mean, a.Weight)
	p.replica.Snapshot(w.point)
	w.gradients.Delta(p.index, a.Progress, w.point, w.mean, w.step)
	if a.Share > 0 {
		for i := range w.step {
			w.step[i] *= float32(a.Share)
		}
	}
	p.replica.Add(w.step)
	p.counts.Updates++
	p.tell(averaging.Event{Kind: averaging.Updated})
}

// halt stops a trainer whose machine cannot go on.
func (p *peer) halt(a averaging.Action) {
	p.halted = true
	p.broke(p.index, fmt.Errorf("%s: %w", a.Reason, errHalted))
}

// prepare makes room for what a GradientTrainer needs, and for the gradients of a
// machine that averages them, whose transfers are coded as the plan says. It fails if the trainer cannot serve the machine.
func (w *World) prepare(m Member) (averages bool, err error) {
	if w.gradients != nil && w.step == nil {
		n := m.Replica.Len()
		w.step, w.mean, w.point = make([]float32, n), make([]float32, n), make([]float32, n)
	}
	if _, averages = m.Machine.(averaging.GradientMachine); !averages {
		if _, pools := m.Machine.(averaging.PoolingMachine); pools {
			m.Replica.UseGradients() // the result of others can come before it pools anything
		}
		return false, nil
	}
	if w.gradients == nil {
		return true, fmt.Errorf("member %q averages gradients, and Trainer is no GradientTrainer", m.ID)
	}
	m.Replica.UseGradients()
	w.transfers = newCoding(replica.TransferTerms{Plan: w.config.Terms.Plan, Codecs: w.config.Terms.Codecs})
	return true, nil
}
