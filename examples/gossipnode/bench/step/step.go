// Package step is the command bench step: it compares a training step with the core's peak and with the same step on
// gonum.
package step

import (
	"fmt"
	"math"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/measure"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
)

const (
	// stepBatch is the batch size in which papers of this field compare.
	stepBatch    = 64
	maxStepBatch = 1024

	defaultStepRounds = 15
	minStepRounds     = 3
)

// stepSettings are the flags of bench step.
type stepSettings struct {
	model  string
	batch  int
	rounds int
	seed   uint64
	json   bool
	gpt    nets.Sizes
}

// shape is the shape of an example.
func (s stepSettings) shape() dataset.Shape {
	shape := stepShape(s.model)
	if nets.ReadsText(s.model) && s.gpt.Context > 0 {
		shape.Width = s.gpt.Context
	}
	return shape
}

// Command makes the command that measures training steps.
func Command(std cli.Streams) *cobra.Command {
	var s stepSettings
	cmd := &cobra.Command{
		Use:   "step",
		Short: "Measure a training step beside the core's peak and the same step on gonum",
		Long: `Step measures a model's training step on one core: the gradient of a batch, the
step that SGD with momentum makes of it, and its addition to the parameters. Batches
are drawn before, dense random values: a real picture's empty background would be
quicker on gonum, whose products skip zeros.

Each round takes three samples in turn. One is a loop of multiply-adds in registers
alone, the core's own peak; GFLOP/s of the step count the products of its layers, two
operations for each multiply-add: forward, gradient of the weights and, but for the
first layer, gradient of the inputs. One is the step. One is the same step as a user
of gonum's blas32 writes it, convolutions by im2col, held to the same core by
GOMAXPROCS=1; there is one for mlp, softmax and cnn. A ratio is the median of those of
the rounds.`,
		Example: `  gossipnode bench step --model mlp
  gossipnode bench step --model cnn --json --rounds 31`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return measure.Run(cmd, &s, &s.json, std) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&s.model, "model", nets.Names()[0], "model: "+cli.List(nets.Names()))
	flags.IntVar(&s.batch, "batch", stepBatch, "pictures, or windows of a text, of a step")
	flags.IntVar(&s.gpt.Layers, "layers", 0, "blocks of a gpt (default 4; a gru has one layer)")
	flags.IntVar(&s.gpt.Width, "width", 0, "values at each place of a gpt or gru (default 128)")
	flags.IntVar(&s.gpt.Heads, "heads", 0, "heads of a gpt's attention (default 4)")
	flags.IntVar(&s.gpt.Context, "context", 0, "bytes that a gpt or gru looks back at (default 128)")
	flags.IntVar(&s.rounds, "rounds", defaultStepRounds, "samples of the step, of the peak and of gonum's step")
	flags.Uint64Var(&s.seed, "seed", 1, "seed of the pictures and of the initial parameters")
	flags.BoolVar(&s.json, "json", false, "print the figures as one JSON object, the last line of standard output")
	cli.TakeFile(flags)
	return cmd
}

func (s stepSettings) Validate(sources cli.Origins) error {
	var sizes error
	if err := s.gpt.Validate(); err != nil {
		sizes = cli.Faultf("width", "%v", err)
	}
	return sources.Usage(
		sizes,
		cli.OneOf("model", s.model, nets.Names()),
		cli.Within("batch", s.batch, 1, maxStepBatch),
		cli.Within("rounds", s.rounds, minStepRounds, measure.MaxRounds),
	)
}

// Measure takes all samples on one core. gonum starts goroutines for large products; GOMAXPROCS=1 keeps them on that
// core.
func (s stepSettings) Measure(cli.Streams) (stepResult, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	model, err := newStepModel(s)
	if err != nil {
		return stepResult{}, err
	}
	b := newStepBench(s, model)
	runtime.GC() // so that no sample pays for earlier garbage
	for range s.rounds {
		b.round()
	}
	if loss := b.work.loss; math.IsNaN(loss) || math.IsInf(loss, 0) {
		return stepResult{}, fmt.Errorf("measuring a step of %s: the loss is no longer a number", s.model)
	}
	return b.result(), nil
}
