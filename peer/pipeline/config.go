package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// Config says what a member of a pipeline does. Plan is required; the other fields have useful zero values.
type Config struct {
	Plan Plan
	// Stage is the part of the plan that this member trains, from 0: a stage, or both ends where these stay with the data.
	Stage int
	// Feed gives the next micro-batch of this member's rows, of 1 to Examples examples: what the model takes, and the targets
	// that its loss asks for. It may wait, until the context ends. The vectors are used until Feed is called again. An error
	// ends the rows; Step reports it. Default: this member has no rows.
	Feed func(context.Context) (x, y tensor.Vector, err error)
	// Examples is the most examples of a micro-batch, the same at all members. Default: 16.
	Examples int
	// Batch is how many micro-batches make a step of this member. Default: 8, or as many as it may hold if that is more.
	Batch int
	// Rounds makes of the run what data-parallel AllReduce makes of it, but for rounding: in a round all stages compute Batch micro-batches
	// of each member with rows (default here: 8), with parameters of one version, and then each stage makes one step. The trainer's
	// machine must be baseline.AllReduce, and all members must have the same. Who has rows and is slow holds all up. Default: each member
	// steps when it has had Batch micro-batches, of whatever rows, and no member waits for another.
	Rounds bool
	// Window is how many micro-batches of its own a member may have on their way. Default: twice the stages, and one.
	Window int
	// Codec codes what goes from stage to stage, and back: raw, bf16, fp16 or int8. Rows and targets are not coded.
	// Default: raw.
	Codec quant.Codec
	// Patience is how long a stage may be without members before Step fails with a *StageLostError. It is waited for without
	// limit until all stages have had members. Default: 2 minutes.
	Patience time.Duration
	// Log receives messages for the operator. Default: nothing is logged.
	Log *zap.Logger
}

// Defaults of a Config.
const (
	DefaultExamples = 16
	DefaultPatience = 2 * time.Minute
)

// validate reports all faults at once.
func (c Config) validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if len(c.Plan.Stages) == 0 || c.Plan.Whole == nil || c.Plan.Loss == nil {
		fault("Plan is missing, or has no stages or no loss: make it with Cut")
	} else if c.Stage < 0 || c.Stage >= c.Plan.Parts() {
		fault("Stage is %d: want 0 to %d", c.Stage, c.Plan.Parts()-1)
	} else if c.Plan.ends && c.Stage > 0 && c.Feed != nil {
		fault("Feed is for members that have the ends, which stay with the data (Plan.EndsStay): give Stage 0, or no Feed")
	}
	if c.Examples < 0 || c.Examples > wire.MaxExamples {
		fault("Examples is %d: want 1 to %d, or 0 for the default", c.Examples, wire.MaxExamples)
	}
	if c.Batch < 0 || c.Window < 0 || c.Patience < 0 {
		fault("Batch %d, Window %d, Patience %s: none may be negative", c.Batch, c.Window, c.Patience)
	}
	if c.Codec.Lattice() {
		fault("Codec is %s, which decodes values by others that are near: want raw, bf16, fp16 or int8", c.Codec.Name())
	}
	if len(faults) > 0 {
		return fmt.Errorf("%w: %w", peer.ErrConfig, errors.Join(faults...))
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Examples = cmp.Or(c.Examples, DefaultExamples)
	c.Window = cmp.Or(c.Window, 2*len(c.Plan.Stages)+1)
	c.Patience = cmp.Or(c.Patience, DefaultPatience)
	if c.Rounds {
		c.Batch = cmp.Or(c.Batch, defaultPerRound)
	}
	if c.Codec == (quant.Codec{}) {
		c.Codec = raw()
	}
	c.Log = cmp.Or(c.Log, zap.NewNop())
	return c
}

// StageLostError: no member has had a stage for Config.Patience. What it had learned is lost, but for the copy of a newcomer
// that takes the stage (Place) and finds one with another member.
type StageLostError struct{ Stage, Of int }

func (e *StageLostError) Error() string {
	return fmt.Sprintf("stage %d of %d has no members any more: start one that takes it", e.Stage+1, e.Of)
}

// raw is the codec that keeps values as they are.
func raw() quant.Codec {
	codec, _ := quant.ByName("raw") // there is one
	return codec
}
