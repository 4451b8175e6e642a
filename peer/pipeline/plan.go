package pipeline

import (
	"fmt"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// Plan is a model cut into stages, the same at all members of a run. Make one with Cut.
type Plan struct {
	// Whole is the model, and Stages are its parts.
	Whole  *nn.Model
	Stages []*nn.Model
	// Loss is that of the whole model.
	Loss nn.Loss
	ends bool // EndsStay
}

// Cut cuts a model before the parts with these numbers (nn.Model.Parts), which nn.Split finds. Each stage needs parameters.
func Cut(model *nn.Model, loss nn.Loss, cuts ...int) (Plan, error) {
	stages, err := model.Stages(cuts...)
	if err != nil {
		return Plan{}, err
	}
	if len(stages) > peer.MaxStages {
		return Plan{}, fmt.Errorf("%d stages: want at most %d", len(stages), peer.MaxStages)
	}
	for i, stage := range stages {
		if stage.Layout().Len() == 0 {
			return Plan{}, fmt.Errorf("stage %d of cuts %v has no parameters, and so nothing to train: cut elsewhere", i, cuts)
		}
	}
	return Plan{Whole: model, Stages: stages, Loss: loss}, nil
}

// EndsStay is the plan of a run in which the first and the last stage stay with the data: who has rows trains both, as the part 0
// of the model, sends nobody what they are made of, nor their targets, and has back the outputs of the stages between, which members
// without rows train: stage 1 is part 1, and so on. The members that have the ends average them as those of any stage do. It needs
// three stages at least. Copies of the ends are given to members alone that have them.
func (p Plan) EndsStay() (Plan, error) {
	if len(p.Stages) < 3 {
		return Plan{}, fmt.Errorf("the ends stay with the data, of %d stages: want 3 at least, so that there is one between them", len(p.Stages))
	}
	p.ends = true
	return p, nil
}

// Parts is how many parts of the model there are to be trained: its stages, of which the ends are one if they stay with the data.
func (p Plan) Parts() int {
	if p.ends {
		return len(p.Stages) - 1
	}
	return len(p.Stages)
}

// stages are those of a part, in order.
func (p Plan) stages(part int) []int {
	if p.ends && part == 0 {
		return []int{0, len(p.Stages) - 1}
	}
	return []int{part}
}

// part is that of a stage.
func (p Plan) part(stage int) int {
	if p.ends && stage == len(p.Stages)-1 {
		return 0
	}
	return stage
}

// Layout is that of the parameters of a part.
func (p Plan) Layout(part int) *tensor.Layout {
	layout := p.Stages[part].Layout()
	if of := p.stages(part); len(of) > 1 {
		var specs []tensor.Spec
		for _, stage := range of {
			for _, r := range p.Stages[stage].Layout().Ranges() {
				specs = append(specs, r.Spec)
			}
		}
		layout, _ = tensor.NewLayout(specs...) // names differ, as they do in the whole
	}
	return layout
}

// length is how many parameters a part has.
func (p Plan) length(part int) (n int) {
	for _, stage := range p.stages(part) {
		n += p.Stages[stage].Layout().Len()
	}
	return n
}

// Stage is what peer.Training says of a part.
func (p Plan) Stage(part int) peer.Stage {
	return peer.StageOf(part, p.Parts(), p.Whole.Layout())
}

// Init returns parameters of a part to start training from: those that the whole model begins with for the same seed. The
// whole is not in memory for that.
func (p Plan) Init(part int, seed uint64) *tensor.Params {
	params := tensor.NewParams(p.Layout(part))
	p.places(part, params.Vector(), func(own tensor.Vector, from int) { p.Whole.InitPart(own, seed, from) })
	return params
}

// Part copies the parameters of a part from those of the whole model.
func (p Plan) Part(part int, whole tensor.Vector) (*tensor.Params, error) {
	if len(whole) != p.Whole.Layout().Len() {
		return nil, fmt.Errorf("%d values, where the whole model has %d", len(whole), p.Whole.Layout().Len())
	}
	params := tensor.NewParams(p.Layout(part))
	p.places(part, params.Vector(), func(own tensor.Vector, from int) { copy(own, whole[from:]) })
	return params, nil
}

// Join makes the parameters of the whole model of those of all parts, in order.
func (p Plan) Join(parts ...tensor.Vector) (*tensor.Params, error) {
	whole, fit := make(tensor.Vector, p.Whole.Layout().Len()), 0
	for i, part := range parts {
		if i < p.Parts() && len(part) == p.length(i) {
			p.places(i, part, func(own tensor.Vector, from int) { fit += copy(whole[from:], own) })
		}
	}
	if len(parts) != p.Parts() || fit != len(whole) {
		return nil, fmt.Errorf("%d stages with %d values that fit, where the model has %d with %d: give the parameters of all, in order",
			len(parts), fit, p.Parts(), len(whole))
	}
	return tensor.WrapParams(p.Whole.Layout(), whole)
}

// places calls do with the values of each stage of a part, and where they begin in the whole model.
func (p Plan) places(part int, v tensor.Vector, do func(own tensor.Vector, from int)) {
	for _, at := range p.stages(part) {
		from := 0
		for _, stage := range p.Stages[:at] {
			from += stage.Layout().Len()
		}
		n := p.Stages[at].Layout().Len()
		do(v[:n], from)
		v = v[n:]
	}
}
