package peertest

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/pipeline"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// Pipeline cuts the model of a Simulation into stages, as package pipeline does in life: the same schedules decide where a
// micro-batch goes, values travel over the simulated links, and those who hold a stage average it as whole models are. Peer i
// begins with stage i modulo their number; one that arrives takes a stage without holders, or the slowest. Plan is required.
type Pipeline struct {
	// Plan is the model of Task.Params, cut.
	Plan pipeline.Plan
	// Examples is the most examples of a micro-batch. Default: 16.
	Examples int
	// Batch is how many micro-batches make a step. Default: 8, or as many as a holder may have if that is more.
	Batch int
	// StepTimes is how long each stage computes for Batch micro-batches, of which a third goes forward. Default: its share of
	// World.Compute.Step by the products of its layers.
	StepTimes []time.Duration
	// Codec codes what goes from stage to stage. Default: raw.
	Codec quant.Codec
	// Optimizer makes that of a stage. Default: Simulation.Optimizer.
	Optimizer func(stage int) optim.Optimizer
	// Rounds: in each round all stages compute Batch micro-batches of each peer with parameters of one version; with the machine
	// of AllReduce, models are then what whole ones are in the same rounds, but for rounding. It takes that machine.
	Rounds bool
	// Chains sends micro-batches along fixed chains of peers, which shows what a straggler costs then.
	Chains bool
	// Patience is how long a stage may be without holders, while none comes. Default: pipeline.DefaultPatience.
	Patience time.Duration
}

// Fed is a Task whose peers have rows for a Pipeline.
type Fed interface {
	// Rows are the next micro-batch of peer i: inputs and targets, its own until the next call.
	Rows(i int) (x, y tensor.Vector, err error)
}

// MicroBatches say what became of micro-batches: those that Came are Done, Lost, or Here.
type MicroBatches struct {
	// Came counts those of rows that were sent into the first stage, or those that reached the holders of a stage.
	Came uint64
	// Done counts those that were computed forward and back, and Lost those that were given up.
	Done, Lost uint64
	// Again is how often one was sent on once more, since who had it was gone or silent, and Late how many answers came
	// that nobody waited for any more: those were computed twice.
	Again, Late uint64
	// Here counts those that were under way when the run ended, or when their peer went.
	Here uint64
}

// StageOutcome is the result of a stage.
type StageOutcome struct {
	// Holders is how many peers hold it at the end, and Parameters how many values each has.
	Holders, Parameters int
	MicroBatches
	// Busy is the share of the time for which its holders computed, of all that they were there.
	Busy float64
	// Copies is how often a holder that was alone gave a copy of it to a peer of another stage.
	Copies int
}

// validate reports the faults of a pipeline in a simulation.
func (p *Pipeline) validate(s Simulation) error {
	var f faults
	k := len(p.Plan.Stages)
	if k == 0 || p.Plan.Whole == nil || p.Plan.Loss == nil {
		return errors.New("Plan is missing, or has no stages or no loss: make it with pipeline.Cut")
	}
	_, fed := s.Task.(Fed)
	f.note(!fed, "Task is no Fed: its peers have no rows for a pipeline")
	f.note(s.Task != nil && s.Task.Params().Layout().Hash() != p.Plan.Whole.Layout().Hash(), "Plan is of another model than Task.Params")
	f.note(s.Peers > 0 && s.Peers < k, "%d peers for %d stages: want one for each", s.Peers, k)
	f.note(p.Examples < 0 || p.Batch < 0 || p.Patience < 0, "Examples %d, Batch %d, Patience %s: none may be negative", p.Examples, p.Batch, p.Patience)
	f.note(len(p.StepTimes) > 0 && len(p.StepTimes) != k || slices.ContainsFunc(p.StepTimes, func(d time.Duration) bool { return d < 0 }),
		"StepTimes %v: want %d, none below 0", p.StepTimes, k)
	f.note(p.Codec.Lattice(), "Codec is %s, which decodes values by others that are near", p.Codec.Name())
	f.note(len(s.World.Lies) > 0 || s.World.Replay != nil || s.Watch.Record != nil, "World.Lies, World.Replay and Watch.Record are for whole models")
	return errors.Join(f...)
}

// parted is who has which part of the model.
type parted struct {
	pipeline *Pipeline          // nil if all peers train the whole
	replicas []*replica.Replica // nil for peers that have not come
	stages   []int              // that each peer holds; 0 without a pipeline
	empty    []time.Duration    // when each stage last had a holder
}

func newParted(s Simulation) parted {
	p := parted{pipeline: s.Pipeline, replicas: make([]*replica.Replica, s.Peers), stages: make([]int, s.Peers)}
	p.empty = make([]time.Duration, p.cut())
	return p
}

// cut is into how many stages the model is cut; 1 if all peers train the whole.
func (p *parted) cut() int {
	if p.pipeline == nil {
		return 1
	}
	return len(p.pipeline.Plan.Stages)
}

// replica makes that of a stage of a model.
func (p *parted) replica(stage int, of *tensor.Params, with replica.Options) (*replica.Replica, error) {
	if p.pipeline != nil {
		var err error
		if of, err = p.pipeline.Plan.Part(stage, of.Vector()); err != nil {
			return nil, err
		}
	}
	return replica.New(of, with)
}

// optimizer makes that of a stage, or of all.
func (p *parted) optimizer(stage int, all func() optim.Optimizer) optim.Optimizer {
	if p.pipeline != nil && p.pipeline.Optimizer != nil {
		return p.pipeline.Optimizer(stage)
	}
	return all()
}

// holders are these peers by stage.
func (p *parted) holders(peers []int) [][]int {
	by := make([][]int, p.cut())
	for _, i := range peers {
		by[p.stages[i]] = append(by[p.stages[i]], i)
	}
	return by
}

// models are those of whom each model of some peers is: each peer once, unless its stage has fewer holders than another.
func (p *parted) models(peers []int) (models [][]int) {
	by := p.holders(peers)
	most := 0
	for _, holders := range by {
		if most = max(most, len(holders)); len(holders) == 0 {
			return nil
		}
	}
	for k := range most {
		var parts []int
		for _, holders := range by {
			parts = append(parts, holders[k%len(holders)])
		}
		models = append(models, parts)
	}
	return models
}

// read copies a model from those who have its parts.
func (p *parted) read(parts []int, x tensor.Vector) {
	for _, i := range parts {
		n := p.replicas[i].Len()
		p.replicas[i].Snapshot(x[:n])
		x = x[n:]
	}
}

// lost is an error if a stage has been without holders for too long, and none is on its way.
func (p *parted) lost(w *sim.World) error {
	if p.pipeline == nil {
		return nil
	}
	for stage := range p.empty {
		if now := w.Now(); w.Holders(stage) > 0 {
			p.empty[stage] = now
		} else if now-p.empty[stage] >= p.pipeline.Patience {
			return &pipeline.StageLostError{Stage: stage, Of: p.cut()}
		}
	}
	return nil
}

// tell adds the figures of a pipeline.
func (p *parted) tell(w *sim.World, o *Outcome) {
	if p.pipeline == nil {
		return
	}
	told := func(c sim.StageCounts) MicroBatches {
		return MicroBatches{Came: c.Came, Done: c.Done, Lost: c.Lost, Again: c.Again, Late: c.Late, Here: c.Here}
	}
	for stage, m := range p.pipeline.Plan.Stages {
		c := w.StageCounts(stage)
		o.Stages = append(o.Stages, StageOutcome{
			Holders: w.Holders(stage), Parameters: m.Layout().Len(),
			MicroBatches: told(c), Busy: c.Busy.Seconds() / max(c.Present.Seconds(), 1e-9), Copies: c.Copies,
		})
	}
	o.Rows = told(w.RowCounts())
	o.Samples = o.Rows.Done * uint64(p.pipeline.Examples)
}

// shares are how long stages compute for a step, of the time of the whole model.
func shares(plan pipeline.Plan, step time.Duration) []time.Duration {
	work, all := make([]float64, len(plan.Stages)), 0.0
	for stage, m := range plan.Stages {
		for _, part := range m.Parts() {
			work[stage] += part.Work
			all += part.Work
		}
	}
	times := make([]time.Duration, len(work))
	for stage := range times {
		times[stage] = time.Duration(float64(step) * work[stage] / all)
	}
	return times
}

// withDefaults fills in what is left out, for a step of the whole model that takes so long.
func (p Pipeline) withDefaults(step time.Duration) *Pipeline {
	p.Examples = cmp.Or(p.Examples, pipeline.DefaultExamples)
	p.Batch = cmp.Or(p.Batch, max(8, 2*len(p.Plan.Stages)+1))
	if len(p.StepTimes) == 0 {
		p.StepTimes = shares(p.Plan, step)
	}
	p.Patience = cmp.Or(p.Patience, pipeline.DefaultPatience)
	if p.Codec == (quant.Codec{}) {
		p.Codec, _ = quant.ByName("raw") // there is one
	}
	return &p
}
