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
	// Index is the stage, from 0, of Of.
	Index, Of int
	// Whole is the layout of the whole model, by which members see that they train parts of the same.
	Whole *tensor.Layout
}

// announce says what this peer trains: the layout is what members of all stages have in common.
func (s Stage) announce(own *flock.Flock, params *tensor.Params) {
	if s.Of == 0 {
		own.SetLayout(params.Layout().Hash())
		return
	}
	own.SetLayout(s.Whole.Hash())
	own.SetStage(uint8(s.Index + 1))
}

func (s Stage) validate(params *tensor.Layout) error {
	switch {
	case s == Stage{}:
		return nil
	case s.Of < 1 || s.Of > MaxStages || s.Index < 0 || s.Index >= s.Of:
		return fmt.Errorf("Stage is %d of %d: want a stage from 0, of 1 to %d", s.Index, s.Of, MaxStages)
	case s.Whole == nil:
		return fmt.Errorf("Stage.Whole is missing: give the layout of the whole model, nn.Model.Layout")
	case params != nil && params.Len() > s.Whole.Len():
		return fmt.Errorf("Stage.Whole has %d values, fewer than Params, which are a part of it, with %d", s.Whole.Len(), params.Len())
	}
	return nil
}
