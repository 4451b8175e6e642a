package peer

import (
	"fmt"

	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/tensor"
)

// MaxStages bounds the stages of a model.
const MaxStages = 64

// Stage says which part of a model larger than one peer Training.Params are (nn.Model.Stages). Members that train the same
// stage exchange, merge and copy parameters among themselves; those of other stages are members of the same run, whose
// steps count for the work. Package pipeline trains a stage. The zero value stands for the whole model.
type Stage struct {
	index, of int
	whole     *tensor.Layout
}

// StageOf is a stage, from 0, of so many of a model. By the layout of the whole, members see that they train parts of the
// same model.
func StageOf(index, of int, whole *tensor.Layout) Stage { return Stage{index, of, whole} }

// announce says what this peer trains: the layout is what members of all stages have in common.
func (s Stage) announce(own *flock.Flock, params *tensor.Params) {
	if s.of == 0 {
		own.SetLayout(params.Layout().Hash())
		own.SetStage(0)
		return
	}
	own.SetLayout(s.whole.Hash())
	own.SetStage(uint8(s.index + 1))
}

// withdraw says that this peer trains no more. Once the run is over, its record goes on to say of which stage it has the
// parameters.
func (s Stage) withdraw(own *flock.Flock) {
	own.SetLayout([32]byte{})
	if !own.IsOver() {
		own.SetStage(0)
	}
}

func (s Stage) validate(params *tensor.Layout) error {
	switch {
	case s == Stage{}:
		return nil
	case s.of < 1 || s.of > MaxStages || s.index < 0 || s.index >= s.of:
		return fmt.Errorf("Stage is %d of %d: want a stage from 0, of 1 to %d", s.index, s.of, MaxStages)
	case s.whole == nil:
		return fmt.Errorf("Stage has no layout of the whole model: give nn.Model.Layout to StageOf")
	case params != nil && params.Len() > s.whole.Len():
		return fmt.Errorf("Stage is of a model of %d values, fewer than Params, which are a part of it, with %d", s.whole.Len(), params.Len())
	}
	return nil
}
