package peertest

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// staged is what the peers of a pipeline compute, a sim.Staged.
type staged struct {
	*trainer
	pipeline *Pipeline
	fed      Fed
	ones     []tensor.Vector // by stage: the gradient of one micro-batch
	errors   tensor.Vector   // over outputs of the last stage
}

func newStaged(t *trainer) *staged {
	p := t.Pipeline
	s := &staged{trainer: t, pipeline: p, fed: t.Task.(Fed), errors: make(tensor.Vector, p.Examples*p.Plan.Whole.Out().Len())}
	for _, m := range p.Plan.Stages {
		s.ones = append(s.ones, make(tensor.Vector, m.Layout().Len()))
	}
	return s
}

// Began implements sim.Staged.
func (s *staged) Began(i int) {
	s.count(i)
	s.peers[i].began = true
}

// Stepped implements sim.Staged.
func (s *staged) Stepped(i int, loss float64) {
	p := &s.peers[i]
	p.loss.Add(loss, lossSmoothing)
	p.ends, p.drawn = s.world.Now(), 0 // rows are counted where they come from
}

// Rows implements sim.Staged.
func (s *staged) Rows(i int) (sim.Parcel, error) {
	x, y, err := s.fed.Rows(i)
	whole := s.pipeline.Plan.Whole
	n := len(x) / whole.In().Len()
	if err == nil && (n < 1 || n > s.pipeline.Examples || len(x) != n*whole.In().Len() || len(y) != n*s.pipeline.Plan.Loss.Terms(whole.Out())) {
		err = fmt.Errorf("a micro-batch of %d values and %d targets: want 1 to %d examples of the model", len(x), len(y), s.pipeline.Examples)
	}
	return sim.Parcel{Values: slices.Clone(x), Targets: slices.Clone(y), Examples: n, Bytes: tensor.ValueSize * (len(x) + len(y))}, err
}

// Takes implements sim.Staged.
func (s *staged) Takes(i, stage int, back bool) time.Duration {
	p, c := &s.peers[i], s.World.Compute
	took := float64(s.pipeline.StepTimes[stage]) / float64(s.pipeline.Batch) / 3
	if back {
		took *= 2
	}
	took *= 1 + c.Jitter*(2*p.pace.Float64()-1)
	if factor, slow := c.Slow[i]; slow {
		took *= factor
	}
	return time.Duration(took)
}

// Code implements sim.Staged.
func (s *staged) Code(values []float32) (coded []float32, bytes int) {
	codec := s.pipeline.Codec
	bytes = codec.MaxSize(len(values))
	if codec.Name() == "raw" {
		return slices.Clone(values), bytes
	}
	data, coded := make([]byte, bytes), make([]float32, len(values))
	codec.Encode(data, values, nil)
	if codec.Decode(coded, data, nil) != nil {
		return slices.Clone(values), bytes // cannot happen: the values are finite
	}
	return coded, bytes
}

// Flow implements sim.Staged.
func (s *staged) Flow(stage int) sim.Flow {
	m := s.pipeline.Plan.Stages[stage]
	return &flow{Flow: m.Flow(s.pipeline.Examples), staged: s, model: m, stage: stage}
}

// flow is a micro-batch at a stage, a sim.Flow.
type flow struct {
	*nn.Flow
	*staged
	model    *nn.Model
	stage    int
	examples int
}

// Forward implements sim.Flow.
func (f *flow) Forward(params, in []float32, seed uint64) (out []float32, useful bool) {
	f.examples = len(in) / f.model.In().Len()
	v := f.Flow.Forward(params, in, seed)
	return v, tensor.Finite(v)
}

// Loss implements sim.Flow.
func (f *flow) Loss(out, targets []float32) (loss float64, errors []float32, useful bool) {
	over, terms := f.errors[:len(out)], float64(len(targets))
	loss = f.pipeline.Plan.Loss.Gradient(over, out, targets, 1/terms) / terms
	return loss, over, loss-loss == 0 && tensor.Finite(over)
}

// Backward implements sim.Flow.
func (f *flow) Backward(params, sum, errors []float32) (below []float32, useful bool) {
	one := f.ones[f.stage]
	v := f.Flow.Backward(params, one, errors, f.stage > 0)
	if !tensor.Finite(one) || !tensor.Finite(v) {
		return nil, false
	}
	tensor.Axpy(sum, float32(f.examples), one)
	return v, true
}
