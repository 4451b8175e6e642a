// Package sample is the command sample: text from a language model.
package sample

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

const (
	defaultTokens = 400
	maxTokens     = 1 << 20
)

// settings are the flags of sample.
type settings struct {
	weights, prompt string
	tokens, heads   int
	temperature     float64
	seed            uint64
}

// Command makes the command sample, which writes text.
func Command(std cli.Streams) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "sample",
		Short: "Write text with a gpt or gru that has learned one",
		Long: `Sample lets a gpt or gru go on with a text, byte by byte. The weights are a safetensors file, as
gossipnode export writes it of a checkpoint, or torch of the same model; what it learned
from decides what it writes.`,
		Example: `  gossipnode local --dataset gosource --model gpt --peers 2 --steps 2000 --checkpoint DIR
  gossipnode export DIR/peer-0 --out gpt.safetensors
  gossipnode sample --weights gpt.safetensors --prompt 'func main() {' --tokens 200`,
		Args: cli.FlagsOnly,
		RunE: func(*cobra.Command, []string) error {
			if err := s.validate(); err != nil {
				return err
			}
			ctx, release := cli.UntilSignal(context.Background(), func() { os.Exit(cli.ExitFailed) })
			defer release()
			return s.write(ctx, std.Out)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&s.weights, "weights", "", "safetensors file of the model")
	flags.StringVar(&s.prompt, "prompt", "", "text to go on with (default: a new line)")
	flags.IntVar(&s.tokens, "tokens", defaultTokens, "bytes to write after the prompt")
	flags.Float64Var(&s.temperature, "temperature", 0.8, "how daring the choice is: 0 takes the likeliest byte each time")
	flags.IntVar(&s.heads, "heads", 0, "heads of a gpt's attention, where the file does not tell them (default 4)")
	flags.Uint64Var(&s.seed, "seed", 1, "seed of the choice")
	return cmd
}

func (s settings) validate() error {
	var faults cli.Faults
	faults.If(s.weights == "", "weights", "is needed: the file of the model")
	faults.Add(cli.Within("heads", s.heads, 0, math.MaxInt32))
	faults.Add(cli.Within("tokens", s.tokens, 1, maxTokens))
	faults.If(!(s.temperature >= 0 && s.temperature <= 100), "temperature", "%v: want 0 to 100", s.temperature)
	if err := errors.Join(faults...); err != nil {
		return cli.Usage(err)
	}
	return nil
}

// write writes the prompt and its continuation.
func (s settings) write(ctx context.Context, out io.Writer) error {
	model, params, err := s.model()
	if err != nil {
		return err
	}
	text := []byte(s.prompt)
	if len(text) == 0 {
		text = []byte("\n")
	}
	if _, err := out.Write(text); err != nil {
		return fmt.Errorf("writing text: %w", err)
	}
	place := model.In().Len()
	rng := rand.New(rand.NewPCG(s.seed, 0))
	window, logits := make(tensor.Vector, place), make(tensor.Vector, model.Out().Len())
	for range s.tokens {
		if ctx.Err() != nil {
			return nil // interrupted: the text so far remains
		}
		seen := text[max(0, len(text)-place):]
		for i, b := range seen {
			window[i] = float32(b) // the model does not read what follows
		}
		model.Predict(params.Vector(), logits, window)
		next := choose(logits[(len(seen)-1)*nets.Vocabulary:len(seen)*nets.Vocabulary], s.temperature, rng)
		text = append(text, next)
		if _, err := out.Write([]byte{next}); err != nil {
			return fmt.Errorf("writing text: %w", err)
		}
	}
	_, err = fmt.Fprintln(out)
	return err
}

// choose draws a byte by its probability at a temperature.
func choose(logits tensor.Vector, temperature float64, rng *rand.Rand) byte {
	best := nn.Argmax(logits)
	if temperature == 0 {
		return byte(best)
	}
	var sums [nets.Vocabulary]float64
	total := 0.0
	for i, v := range logits {
		total += math.Exp(float64(v-logits[best]) / temperature)
		sums[i] = total
	}
	at := rng.Float64() * total
	for i, sum := range sums {
		if at < sum {
			return byte(i)
		}
	}
	return byte(best)
}

// model reads the weights, whose shapes give the sizes.
func (s settings) model() (*nn.Model, *tensor.Params, error) {
	file, err := checkpoint.Open(s.weights)
	if err != nil {
		return nil, nil, fmt.Errorf("weights: %w", err)
	}
	if file.IsCheckpoint() {
		return nil, nil, cli.Usagef("--weights %s is a checkpoint: write its model with gossipnode export, and give that", s.weights)
	}
	build, sizes := s.sizes(file)
	if build == nil {
		return nil, nil, fmt.Errorf("reading weights from %s: they are not of a gpt or gru: give what gossipnode export writes of one that --model gpt or --model gru has trained", s.weights)
	}
	model, err := build(sizes)
	if err != nil {
		return nil, nil, cli.Usage(fmt.Errorf("reading weights from %s: %w", s.weights, err))
	}
	params := tensor.NewParams(model.Layout())
	if err := file.Load(params); err != nil {
		return nil, nil, fmt.Errorf("reading weights from %s: %w", s.weights, err)
	}
	return model, params, nil
}

// sizes are the sizes that a file tells, and what makes the model of them; nil if it is of no text model.
func (s settings) sizes(file *checkpoint.File) (build func(nets.Sizes) (*nn.Model, error), sizes nets.Sizes) {
	told := func(key string) int {
		n, _ := strconv.Atoi(file.Metadata[key]) // 0 is the default
		return n
	}
	sizes.Heads = cmp.Or(s.heads, told(nets.HeadsKey))
	for _, r := range file.Tensors.Layout().Ranges() {
		switch {
		case r.Name == "1.weight" && len(r.Shape) == 2:
			sizes.Context, sizes.Width = r.Shape[0], r.Shape[1]
		case r.Name == "1.weight_ih_l0" && len(r.Shape) == 2:
			return nets.GRUOf, nets.Sizes{Width: r.Shape[1], Context: told(nets.ContextKey), Heads: 1}
		case strings.HasSuffix(r.Name, ".in_proj_weight"):
			sizes.Layers++
		}
	}
	if sizes.Layers == 0 || sizes.Width == 0 {
		return nil, sizes
	}
	return nets.GPTOf, sizes
}
