package nets

import (
	"errors"
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/tensor/nn"
)

// Vocabulary is the number of tokens of a GPT: the values of a byte.
const Vocabulary = 256

// The keys, in the metadata of a file of a text model's weights, of sizes that the shapes do not tell: the heads of a GPT,
// and the bytes that a GRU looked back at when it learned.
const (
	HeadsKey   = "heads"
	ContextKey = "context"
)

// Sizes are those of a model. The zero value is the default.
type Sizes struct {
	// Of a GPT, Layers is the number of blocks, Width the number of values at each place, Heads the number of heads of each
	// attention, Context the number of bytes that it reads. Default: 4 layers, width 128, 4 heads, context 128.
	Layers, Width, Heads, Context int
	// Hidden is how many units the hidden layer of an mlp has. Default: 256.
	Hidden int
}

// Bounds of a GPT, and of an MLP.
const (
	maxHidden  = 1 << 14
	maxBlocks  = 64
	maxWidth   = 1 << 12
	maxContext = 1 << 13
)

// WithDefaults replaces each size of 0 by its default.
func (s Sizes) WithDefaults() Sizes {
	for _, d := range []struct {
		at    *int
		value int
	}{{&s.Layers, 4}, {&s.Width, 128}, {&s.Heads, 4}, {&s.Context, 128}, {&s.Hidden, 256}} {
		if *d.at == 0 {
			*d.at = d.value
		}
	}
	return s
}

// Validate returns all faults of the sizes in one error.
func (s Sizes) Validate() error {
	s = s.WithDefaults()
	var errs []error
	if s.Hidden < 1 || s.Hidden > maxHidden {
		errs = append(errs, fmt.Errorf("%w: mlp: hidden %d: want 1 to %d", ErrModel, s.Hidden, maxHidden))
	}
	for _, c := range []struct {
		name     string
		is, most int
	}{{"layers", s.Layers, maxBlocks}, {"width", s.Width, maxWidth}, {"heads", s.Heads, s.Width}, {"context", s.Context, maxContext}} {
		if c.is < 1 || c.is > c.most {
			errs = append(errs, fmt.Errorf("%w: gpt: %s %d: want 1 to %d", ErrModel, c.name, c.is, c.most))
		}
	}
	if len(errs) == 0 && s.Width%s.Heads != 0 {
		errs = append(errs, fmt.Errorf("%w: gpt: width %d: want a multiple of the %d heads", ErrModel, s.Width, s.Heads))
	}
	return errors.Join(errs...)
}

// NewGPT makes a byte-level language model (a small version of Radford et al., 2019): examples are Context bytes,
// outputs are the logits of the byte that follows each.
func NewGPT(s Sizes) (Model, error) {
	model, err := GPTOf(s)
	if err != nil {
		return nil, err
	}
	return networkOf(model), nil
}

// GPTOf is the model of NewGPT without its trainer.
func GPTOf(s Sizes) (*nn.Model, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	s = s.WithDefaults()
	small := nn.Normal(0.02)
	last := nn.Normal(0.02 / math.Sqrt(float64(2*s.Layers))) // for layers that add to the residual stream
	layers := []nn.Layer{nn.WithStart(nn.Embedding(Vocabulary, s.Width), small), nn.WithStart(nn.Positions(s.Context, s.Width), small)}
	for range s.Layers {
		layers = append(layers,
			nn.Residual(nn.LayerNorm(s.Width), nn.WithStart(nn.CausalSelfAttention(s.Width, s.Heads, false), small)),
			nn.Residual(nn.LayerNorm(s.Width), nn.WithStart(nn.Linear(s.Width, 4*s.Width), small), nn.GELU(), nn.WithStart(nn.Linear(4*s.Width, s.Width), last)))
	}
	layers = append(layers, nn.LayerNorm(s.Width), nn.WithStart(nn.LinearNoBias(s.Width, Vocabulary), small))
	return nn.Sequential(layers...).Build(s.Context)
}
