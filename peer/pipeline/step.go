package pipeline

import (
	"context"
	"fmt"

	"github.com/seed-97356399/murmuration/internal/stages"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/tensor"
)

// Step computes micro-batches until there are enough for a step of this member's trainer, and makes it. It fails as
// peer.Trainer.Step does, with what Config.Feed returned, or with a *StageLostError. Micro-batches are computed only
// while Step runs.
func (p *Pipeline) Step(ctx context.Context) error {
	err := p.trainer.Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) { return p.gradient(ctx, x, grad) })
	if err == nil {
		p.copyOut()
	}
	return err
}

// gradient is the mean gradient of the micro-batches of a step.
func (p *Pipeline) gradient(ctx context.Context, x, grad tensor.Vector) (peer.Result, error) {
	d := p.desk
	d.params = x
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		d.leave(p.held)
		d.Result = peer.Result{}
	}()
	if d.begun {
		d.begun = false
		p.tell(func() []stages.Action { return p.holder.Stepped(p.now()) })
	}
	for {
		select {
		case j := <-d.jobs:
			if j.Kind == stages.Step {
				d.begun = true
				return d.mean(grad), nil
			}
			useless := d.compute(j, grad)
			p.tell(func() []stages.Action { return p.holder.Computed(p.now(), j.At, useless) })
		case <-ctx.Done():
			return peer.Result{}, fmt.Errorf("waiting for micro-batches: %w", context.Cause(ctx))
		case <-p.service.Over:
			return peer.Result{}, peer.ErrRunOver
		case <-p.life.Done():
			return peer.Result{}, context.Cause(p.life)
		}
	}
}

// tell tells the schedule something, and carries out what it says.
func (p *Pipeline) tell(something func() []stages.Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.carryOut(something())
}
