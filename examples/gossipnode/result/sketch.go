package result

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/tensor"
)

const (
	// sketchLen is the number of values of a sketch. Distances between models are kept with
	// a standard error of 1/√(2·sketchLen), 1.1 %; and a report of a peer must not be longer
	// than a line may be.
	sketchLen = 4096
	// sketchSeed draws where each parameter goes: the same for all peers.
	sketchSeed = 0x6d75726d
	bytesEach  = 8 // of a value
)

// Sketch stands for a model where distances between models are wanted, and is small: each
// parameter is added to one of its values, or subtracted, both by chance, the same for all
// models (a count sketch). The sketch of a difference is the difference of the sketches,
// and its squared length is on the average that of the difference. A model of no more
// parameters than a sketch has values is its own.
type Sketch []float64

// SketchOfShared is the sketch of what peers share of a model: what is local to each, such
// as the statistics of a batch normalization, counts as zero.
func SketchOfShared(p *tensor.Params) Sketch {
	shared := slices.Clone(p.Vector())
	for _, r := range p.Layout().Ranges() {
		if r.Sharing == tensor.Local {
			clear(shared[r.Offset : r.Offset+r.Len])
		}
	}
	return SketchOf(shared)
}

// SketchOf is the sketch of a model.
func SketchOf(model tensor.Vector) Sketch {
	s := make(Sketch, min(sketchLen, len(model)))
	if len(model) <= sketchLen {
		for i, v := range model {
			s[i] = float64(v)
		}
		return s
	}
	chance := rand.NewPCG(sketchSeed, uint64(len(model)))
	for _, v := range model {
		drawn := chance.Uint64()
		if drawn>>63 == 0 {
			s[drawn%sketchLen] += float64(v)
		} else {
			s[drawn%sketchLen] -= float64(v)
		}
	}
	return s
}

// MarshalText implements encoding.TextMarshaler: base64 of the values, little-endian.
func (s Sketch) MarshalText() ([]byte, error) {
	values := make([]byte, 0, bytesEach*len(s))
	for _, v := range s {
		values = binary.LittleEndian.AppendUint64(values, math.Float64bits(v))
	}
	return base64.StdEncoding.AppendEncode(nil, values), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Sketch) UnmarshalText(text []byte) error {
	values, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		return fmt.Errorf("reading the sketch of a model: %w", err)
	}
	if len(values)%bytesEach != 0 || len(values) > bytesEach*sketchLen {
		return errors.New("reading the sketch of a model: this is none")
	}
	*s = make(Sketch, len(values)/bytesEach)
	for i := range *s {
		(*s)[i] = math.Float64frombits(binary.LittleEndian.Uint64(values[bytesEach*i:]))
	}
	return nil
}

// Distance is the root mean square distance of models from their mean, by their sketches:
// exactly 0 if all are the same, unknown if there are fewer than two or they are of
// different models.
func Distance(models []Sketch) cli.Number {
	unknown := cli.Number(math.NaN())
	if len(models) < 2 {
		return unknown
	}
	squared, n := 0.0, float64(len(models))
	for _, m := range models {
		if len(m) != len(models[0]) || len(m) == 0 {
			return unknown
		}
	}
	for i, origin := range models[0] { // what all have in common would be rounded
		var sum, squares float64
		for _, m := range models {
			d := m[i] - origin
			sum += d
			squares += d * d
		}
		squared += squares - sum*sum/n
	}
	return cli.Number(math.Sqrt(max(squared, 0) / n))
}
