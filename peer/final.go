package peer

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// final is what it takes to end with the same model as all others, for a machine that
// makes one of all (averaging.PoolingMachine). Once the run is over no step is applied,
// and once the parameters are pooled nothing but the merge changes them. A nil one is of
// a peer that ends with its own. docs/design/022 says how.
type final struct {
	mu     sync.Mutex  // guards pooled, and orders steps and settlements before it
	pooled bool        // the parameters are, or were, part of a sum
	merged atomic.Bool // the machine has settled: the model is that of all
}

// newFinal is nil unless the machine merges.
func newFinal(machine averaging.Machine, r *replica.Replica) *final {
	if _, ok := machine.(averaging.PoolingMachine); !ok {
		return nil
	}
	r.UseGradients()
	return &final{}
}

// settle notes that the machine has settled.
func (f *final) settle() {
	if f != nil {
		f.merged.Store(true)
	}
}

// pending tells that a merge is still to come.
func (f *final) pending() bool { return f != nil && !f.merged.Load() }

// done tells that there was a merge.
func (f *final) done() bool { return f != nil && f.merged.Load() }

// pool makes the sum the parameters, times a weight.
func (f *final) pool(r *replica.Replica, weight float64) {
	if f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.pooled = true
	}
	r.Pool(weight)
}

// adopt makes the sum the parameters: that of the merge, which this peer need not have
// been part of.
func (f *final) adopt(r *replica.Replica) {
	if f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.pooled = true
	}
	r.Adopt()
}

// noMoreSteps notes that the run is over: a step that is not applied yet will not be. It
// reports false if it was over.
func (p *Peer) noMoreSteps() bool {
	if f := p.final; f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
	}
	return p.counters.over.CompareAndSwap(false, true)
}

// add adds a step to the parameters, unless it comes too late for the merge, or nobody
// would take the model after it.
func (p *Peer) add(delta tensor.Vector, model int) (waited time.Duration, err error) {
	if !tensor.Finite(delta) || p.replica.Believed(delta) != nil {
		return 0, fmt.Errorf("step %d: %w, or so long that nobody would take the model: lower the learning rate; it was not applied", p.counters.steps.Load()+1, ErrNotFinite)
	}
	if f := p.final; f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		if p.counters.over.Load() {
			return 0, p.control.runOver()
		}
	}
	if !p.arrival.replaced.unless(model, func() { waited = p.replica.Add(delta) }) {
		return 0, errReplaced
	}
	return waited, nil
}

// resolve settles what was in doubt by a partner's answer. Slices that it would apply to
// a model that is part of the merge are lost instead: they would set it apart.
func (p *Peer) resolve(partner string, exchange uint64, question wire.Status, answer wire.Settled) (applied, dropped, lost int) {
	if f := p.final; f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		answer.Known = answer.Known && !f.pooled
	}
	return p.sides.ledger.Settle(partner, exchange, question, answer)
}

// tellMerged says, of a peer that has left, if there was to be a merge and is none.
func (p *Peer) tellMerged() {
	if p.counters.over.Load() && p.final.pending() {
		p.log.Warn("the final merge has not come about within the time to leave: this peer keeps its own model. If links are slow or members busy, allow more time",
			zap.Duration("grace", p.config.Work.Grace))
	}
}
