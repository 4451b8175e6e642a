package pipeline

import (
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/idle"
	"github.com/seed-97356399/murmuration/internal/stages"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// job is what the schedule asks the goroutine that computes to do.
type job struct {
	stages.Action
	held  *held
	stage *stage
}

// desk computes micro-batches of a stage. The goroutine that calls Step has it.
type desk struct {
	with  Config
	model *nn.Model
	first bool
	last  bool
	flows idle.Pool[*nn.Flow]

	params tensor.Vector // the newest, which the trainer owns; nil between two steps
	older  tensor.Vector // those of micro-batches that were computed forward before the last step, if there were any
	one    tensor.Vector // the gradient of one micro-batch
	grad   tensor.Vector // the sum of those of this step
	errors tensor.Vector // over the outputs of the last stage
	due    bool          // the schedule waits for a step
	said   bool          // that a micro-batch cannot be computed
	worst  worst         // of this step
	peer.Result
}

// worst is who sent the largest errors of a step, and the mean of their squares.
type worst struct {
	from   transport.PeerID
	square float64
}

// maxFlows bounds the memories of micro-batches that are kept for later ones.
const maxFlows = 2*peer.MaxStages + 1

func newDesk(with Config, stage int) *desk {
	model := with.Plan.Stages[stage]
	n := model.Layout().Len()
	d := &desk{
		with: with, model: model, first: stage == 0, last: stage == len(with.Plan.Stages)-1,
		flows: idle.NewPool(maxFlows, flowsOf(model, with.Examples)),
		one:   make(tensor.Vector, n),
	}
	if d.last {
		d.errors = make(tensor.Vector, with.Examples*model.Out().Len())
	}
	return d
}

// flowsOf makes memories of micro-batches, which share what nothing needs between two computations.
func flowsOf(model *nn.Model, examples int) func() *nn.Flow {
	var first *nn.Flow
	return func() *nn.Flow {
		if first != nil {
			return first.Another()
		}
		first = model.Flow(examples)
		return first
	}
}

// free takes back the memory of a micro-batch.
func (d *desk) free(h *held) {
	if h.flow != nil {
		d.flows.Put(h.flow)
	}
}

// leave ends a step: the trainer uses the memory of its parameters again, so those of micro-batches on their way are copied.
// If the step was not made, some may be of the parameters before it too.
func (d *desk) leave(all map[stages.Key]*held) {
	is := func(a, b tensor.Vector) bool { return a != nil && b != nil && &a[0] == &b[0] }
	used, older := false, false
	for _, h := range all {
		used, older = used || is(h.params, d.params), older || is(h.params, d.older)
	}
	if used && (older || d.older == nil) {
		d.older = make(tensor.Vector, len(d.params))
	}
	if used {
		copy(d.older, d.params)
	}
	for _, h := range all {
		if is(h.params, d.params) {
			h.params = d.older
		}
	}
	d.params, d.grad, d.Result = nil, nil, peer.Result{}
}

// compute does a job, and adds the gradient of a micro-batch that goes back. It returns true if the values are of no use, as
// those that a layer panics at, such as the number of no row of an embedding: members may send them.
func (d *desk) compute(j job) (useless bool) {
	h := j.held
	defer func() {
		if fault := recover(); fault != nil {
			h.flow, useless = nil, true // it broke off midway, and is not used again
			if !d.said {                // a member may send many
				d.said = true
				d.with.Log.Warn("a micro-batch cannot be computed; others are left out without a word", zap.String("peer", string(j.At.From)), zap.Any("fault", fault))
			}
		}
	}()
	if h.flow == nil {
		h.flow, h.params = d.flows.Take(), d.params
		var out tensor.Vector
		if h.id.Asks {
			out = h.flow.Predict(h.params, h.in)
		} else {
			out = h.flow.Forward(h.params, h.in, h.id.Number^h.id.Source.Fingerprint())
		}
		if !tensor.Finite(out) {
			return true
		}
		if useless = d.forward(h, out); useless || j.Kind == stages.ComputeForward {
			return useless
		}
	}
	examples := len(h.in) / d.model.In().Len()
	below := h.flow.Backward(h.params, d.one, h.errors, !d.first)
	if !tensor.Finite(d.one) || !tensor.Finite(below) {
		return true
	}
	if square := tensor.SumSquares(h.errors) / float64(len(h.errors)); h.from != "" && len(h.errors) > 0 && square >= d.worst.square {
		d.worst = worst{h.from, square}
	}
	h.back = encode(h.codec, below)
	tensor.Axpy(d.grad, float32(examples), d.one)
	d.Loss += h.loss * float64(examples)
	d.Samples += examples
	return false
}

// forward keeps what the outputs of this stage are for: they go on, or back, or have errors.
func (d *desk) forward(h *held, out tensor.Vector) (useless bool) {
	switch {
	case h.id.Asks && d.last:
		h.back = encode(raw(), out)
	case h.id.Asks:
		h.onwards = encode(raw(), out)
	case !d.last:
		h.onwards = encode(d.with.Codec, out)
	default:
		terms := float64(len(h.targets))
		h.errors = d.errors[:len(out)]
		h.loss = d.with.Plan.Loss.Gradient(h.errors, out, h.targets, 1/terms) / terms
		return h.loss-h.loss != 0 || !tensor.Finite(h.errors)
	}
	return false
}

// mean makes the sum of gradients their mean over all examples.
func (d *desk) mean() (r peer.Result) {
	if r = d.Result; r.Samples > 0 {
		tensor.Scale(d.grad, 1/float32(r.Samples))
		r.Loss /= float64(r.Samples)
	}
	return r
}
