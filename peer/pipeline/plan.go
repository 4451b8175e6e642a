package pipeline

import (
	"fmt"
	"slices"

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

// Stage is what peer.Training says of a stage.
func (p Plan) Stage(index int) peer.Stage {
	return peer.StageOf(index, len(p.Stages), p.Whole.Layout())
}

// Init returns parameters of a stage to start training from: those that the whole model begins with for the same seed.
func (p Plan) Init(index int, seed uint64) *tensor.Params {
	part, err := p.Part(index, p.Whole.Init(seed).Vector())
	if err != nil {
		panic(err) // the whole has its own length
	}
	return part
}

// Part copies the parameters of a stage from those of the whole model.
func (p Plan) Part(index int, whole tensor.Vector) (*tensor.Params, error) {
	if len(whole) != p.Whole.Layout().Len() {
		return nil, fmt.Errorf("%d values, where the whole model has %d", len(whole), p.Whole.Layout().Len())
	}
	from := p.offset(index)
	layout := p.Stages[index].Layout()
	return tensor.WrapParams(layout, slices.Clone(whole[from:from+layout.Len()]))
}

// Join makes the parameters of the whole model of those of all stages, in order.
func (p Plan) Join(stages ...tensor.Vector) (*tensor.Params, error) {
	whole := make(tensor.Vector, 0, p.Whole.Layout().Len())
	for i, part := range stages {
		if i < len(p.Stages) && len(part) == p.Stages[i].Layout().Len() {
			whole = append(whole, part...)
		}
	}
	if len(stages) != len(p.Stages) || len(whole) != p.Whole.Layout().Len() {
		return nil, fmt.Errorf("%d stages with %d values that fit, where the model has %d with %d: give the parameters of all, in order",
			len(stages), len(whole), len(p.Stages), p.Whole.Layout().Len())
	}
	return tensor.WrapParams(p.Whole.Layout(), whole)
}

// offset is where the values of a stage begin in the whole model.
func (p Plan) offset(index int) (from int) {
	for _, stage := range p.Stages[:index] {
		from += stage.Layout().Len()
	}
	return from
}
