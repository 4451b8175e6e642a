package nn

import (
	"fmt"

	"github.com/seed-97356399/murmuration/tensor"
)

// Dropout, in training, sets each value to 0 with a probability from 0 to below 1, and divides the others by the
// probability of being kept (Srivastava et al., 2014), as torch.nn.Dropout. Trainer.Seed and the number of the batch
// decide which values.
func Dropout(probability float64) Layer { return dropout{probability} }

type dropout struct{ probability float64 }

func (d dropout) String() string { return fmt.Sprintf("Dropout(%g)", d.probability) }

func (d dropout) For(in Shape) (Built, error) {
	if !(d.probability >= 0 && d.probability < 1) {
		return Built{}, fmt.Errorf("want a probability from 0 to below 1")
	}
	return Built{Out: in, Make: func(r *Room) Step {
		return &dropoutStep{number: r.Number(), below: uint32(d.probability * (1 << 32)), scale: float32(1 / (1 - d.probability)), values: in.Len(), y: r.Values(in.Len())}
	}}, nil
}

type dropoutStep struct {
	number uint64 // of the layer
	below  uint32 // smaller draws set a value to 0
	scale  float32
	values int // of an example
	y      tensor.Vector
}

// Forward implements Step.
func (s *dropoutStep) Forward(p Pass, _, x tensor.Vector) tensor.Vector {
	y := s.y[:len(x)]
	copy(y, x)
	s.drop(p, y)
	return y
}

// Backward implements Step.
func (s *dropoutStep) Backward(p Pass, _, _, e tensor.Vector) tensor.Vector {
	s.drop(p, e)
	return e
}

// drop sets to 0, and scales, the same values of v in Forward and Backward.
func (s *dropoutStep) drop(p Pass, v tensor.Vector) {
	if !p.Train || s.below == 0 {
		return
	}
	for i := range p.Examples {
		draw := mix(p.Seed + s.number<<40 + uint64(p.From+i))
		for j := range part(v, i, 1, s.values) {
			draw = draw*6364136223846793005 + 1442695040888963407 // Knuth's generator; its upper half is random enough
			at := &v[i*s.values+j]
			if uint32(draw>>32) < s.below {
				*at = 0
			} else {
				*at *= s.scale
			}
		}
	}
}
