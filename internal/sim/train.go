package sim

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/trainer"
)

// Task is what the peers of a world compute.
type Task interface {
	// Duration is how long the next step of a peer takes, at least a microsecond. Steps
	// are numbered from 0; samples is how many the machine wants in the gradient, 0 if any
	// number.
	Duration(peer, step, samples int) time.Duration
	// Gradient writes the mean gradient at x over the peer's next samples into grad, which
	// is zero, and returns their mean loss and number. It is called once for each step of a
	// peer, in order, when the step ends. After World.Fork it may be called before, and for
	// several peers at the same time, though not for two by the same worker: what it depends
	// on may change with calls for the same peer only.
	Gradient(worker, peer, step int, x, grad []float32) (loss float64, samples int, err error)
	// Progress is how much of the run is done, as a peer sees it, 0 to 1.
	Progress(peer int) float64
	// Rate is the learning rate at a progress that all peers know, or where this one sees
	// the run if that is 0.
	Rate(peer int, progress float64) float64
}

// Gradual is a Task whose gradients are ready bit by bit, the last values first.
type Gradual interface {
	// Readiness is when, as a share of the duration of a peer's steps.
	Readiness(peer int) []Ready
}

// Ready tells that values from one on are ready when a share of the step is done.
type Ready struct {
	From int
	Done float64
}

// Factored is a Task whose gradients have matrices that are products of factors.
type Factored interface {
	// Factors are those of the last gradient of a peer, which are its own until the next.
	Factors(peer int) []Factors
}

// Factors are those of a matrix, as peer.Trainer takes them.
type Factors struct {
	At             int
	Inputs, Errors []float32
}

// minStep is the least duration of a step, so that time passes whatever a task says.
const minStep = time.Microsecond

// training is the trainer of a peer in virtual time: steps take as long as the task says.
type training struct {
	*trainer.Trainer
	peer       *peer
	gradients  bool // gradients are averaged: a gradient counts as a step when the machine says Proceed
	halted     bool // no further step is made
	servesOnly bool // no step is made

	stepping bool // a step has begun and not ended
	x        []float32
	grad     []float32 // borrowed from the world until the step ends
	samples  int
	loss     float64
	fault    error
	factors  []Factors // that the trainer has not been told of yet
	computed bool      // the gradient has been computed
	waiting  bool      // for the machine's Proceed
	version  uint64    // of the parameters, as the machine says
}

// proceed lets the peer take its next step at parameters of a version, of as many samples as the machine wants.
func (t *training) proceed(samples int, version uint64) {
	t.version = version
	if t.waiting {
		t.waiting = false
		t.Proceed(t.peer.now())
	}
	t.begin(samples)
}

// begin begins the peer's next step, unless the training is over.
func (t *training) begin(samples int) {
	p := t.peer
	w := p.world
	if w.over || t.stepping || p.gone || t.halted {
		return
	}
	if p.staged != nil {
		p.staged.desk.begin()
		return
	}
	t.stepping, t.computed = true, false
	t.x, _ = t.Begin()
	took := max(w.config.Task.Duration(p.index, p.counts.Steps, samples), minStep)
	if w.gradients.workers > 0 {
		w.gradients.owed.push(happening[*training]{at: p.now() + took, what: t})
	}
	if gradual, is := w.config.Task.(Gradual); is && t.gradients {
		step := p.counts.Steps
		for _, r := range gradual.Readiness(p.index) {
			w.queue.After(time.Duration(r.Done*float64(took)), func() { t.ready(step, r.From) })
		}
	}
	w.queue.After(took, t.end)
}

// ready reports that the gradient's values from one on are ready.
func (t *training) ready(step, from int) {
	p := t.peer
	if p.gone || !t.stepping || p.counts.Steps != step {
		return
	}
	p.world.gradients.finish(t)
	if t.fault != nil {
		return
	}
	t.lend()
	if event, wanted := t.Ready(from, t.samples); wanted {
		event.Initial = p.counts.Steps == 0 && !p.copied
		p.driver.report(event)
	}
}

// compute computes the gradient of the current step.
func (t *training) compute(worker int) {
	p := t.peer
	clear(t.grad)
	t.loss, t.samples, t.fault = p.world.config.Task.Gradient(worker, p.index, p.counts.Steps, t.x, t.grad)
	if task, is := p.world.config.Task.(Factored); is && t.gradients {
		t.factors = task.Factors(p.index)
	}
	t.computed = true
}

// lend gives the trainer the gradient, and what is known of it.
func (t *training) lend() {
	t.Lend(t.grad)
	for _, f := range t.factors {
		t.Factors(f.At, f.Inputs, f.Errors)
	}
	t.factors = nil
}

// end ends the step: it applies or reports its gradient.
func (t *training) end() {
	p := t.peer
	if !p.gone {
		p.world.gradients.finish(t)
		t.lend()
		t.took()
	}
	p.world.gradients.give(t)
}

// took applies the gradient as a step of the optimizer.
func (t *training) took() {
	p := t.peer
	t.stepping = false
	if t.fault != nil {
		t.failed(fmt.Errorf("step %d: computing the gradient: %w", p.counts.Steps+1, t.fault))
		return
	}
	gradient := func() (collective.Event, error) { return t.Gradient(p.now(), t.loss, t.samples) }
	if p.staged != nil && p.staged.rounds.machine != nil && t.samples == 0 {
		gradient = t.Empty // in a round others may have had all
	}
	event, err := gradient()
	if err != nil && t.gradients {
		p.driver.report(collective.Event{Event: averaging.Event{Kind: collective.GradientLost}})
	}
	switch {
	case errors.Is(err, trainer.ErrOver):
	case err != nil:
		t.failed(err)
	default:
		t.waiting = t.gradients
		event.Initial = p.counts.Steps == 0 && !p.copied
		p.driver.report(event)
	}
}

// failed ends the training of a peer whose step cannot be made.
func (t *training) failed(err error) {
	t.halted = true
	if hook := t.peer.world.config.Hooks.Failed; hook != nil {
		hook(t.peer.index, err)
	}
}

// update makes a step of the sum of gradients.
func (t *training) update(a collective.Action) {
	p := t.peer
	g := &p.world.gradients
	n := p.replica.Len()
	if len(g.mean) < n { // members of a pipeline have parts of different lengths
		g.mean, g.x = make([]float32, n), make([]float32, n)
	}
	p.replica.Drain(g.mean[:n], a.Transfer.Part, a.Transfer.Parts, a.Weight)
	if err := t.Update(a, g.mean[:n], g.x[:n]); err != nil {
		t.failed(err)
	}
}

// Made implements trainer.Run.
func (t *training) Made(trainer.Step) {
	t.peer.counts.Steps++
	t.peer.world.made++
}

// Steps implements trainer.Run.
func (t *training) Steps() (own, all uint64, peers int) {
	for _, p := range t.peer.world.peers {
		if !p.gone {
			peers++
		}
	}
	return uint64(t.peer.counts.Steps), t.peer.world.made, peers
}

// Exchanges implements trainer.Run.
func (t *training) Exchanges() uint64 {
	return uint64(t.peer.counts.Initiated + t.peer.counts.Served)
}

// Progress implements trainer.Run.
func (t *training) Progress() float64 { return t.peer.world.config.Task.Progress(t.peer.index) }

// Rate implements trainer.Run.
func (t *training) Rate(progress float64) float64 {
	return t.peer.world.config.Task.Rate(t.peer.index, progress)
}

// MaxWorkers bounds the goroutines that compute gradients.
const MaxWorkers = 64

// ahead is the number of steps whose gradients are computed together. It does not depend on
// the number of workers, so that a task counts the same on every machine.
const ahead = 256

// gradients are computed one by one as steps end, or several at once.
type gradients struct {
	workers int                   // 0 unless the world forks
	owed    happenings[*training] // steps that have begun and whose gradients are not yet computed, as they end
	due     []*training           // scratch
	mean, x []float32             // scratch for updates
	spare   spares[[]float32]
}

// finish computes the gradient of a step if it is missing; a world that forks also
// computes those of the steps that end next, which no later event can change.
func (g *gradients) finish(t *training) {
	for !t.computed && len(g.owed) > 0 { // several rounds if many steps end at one moment, or their peers have gone
		g.next()
	}
	if !t.computed {
		g.take(t)
		t.compute(0)
	}
}

// next computes the gradients of the steps that end first, at most ahead of them.
func (g *gradients) next() {
	due := g.due[:0]
	for len(g.owed) > 0 && len(due) < ahead {
		if t := g.owed.pop().what; !t.peer.gone {
			g.take(t)
			due = append(due, t)
		}
	}
	g.due = due
	var next atomic.Int64
	work := func(worker int) {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(due) {
				return
			}
			due[i].compute(worker)
		}
	}
	var group sync.WaitGroup
	for worker := 1; worker < min(g.workers, len(due)); worker++ {
		group.Go(func() { work(worker) })
	}
	work(0)
	group.Wait()
}

// take gives a step a vector for its gradient.
func (g *gradients) take(t *training) {
	var ok bool
	if t.grad, ok = g.spare.take(); !ok {
		t.grad = make([]float32, t.peer.replica.Len())
	}
}

// give takes the vector back.
func (g *gradients) give(t *training) {
	if t.grad != nil {
		g.spare.give(t.grad)
		t.grad = nil
	}
}
