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
	// sketchLen is the largest number of values of a sketch. The standard error of distances
	// between models is 1/√(2·sketchLen), 1.1 %. More values would make a peer's report longer
	// than a line may be.
	sketchLen = 4096
	// sketchSeed is the seed that assigns parameters to values: the same for all peers.
	sketchSeed = 0x6d75726d
	bytesEach  = 8 // bytes of a value
)

// Sketch is a small stand-in for a model, from which distances between models are estimated
// (a count sketch). Each parameter is added to a random value of the sketch, or subtracted
// from it, in the same way for all models. The sketch of a difference is the difference of
// the sketches, and its squared length is on average that of the difference. A model with
// at most sketchLen parameters is its own sketch.
type Sketch []float64

// SketchOfShared is the sketch of the parameters that peers share. Parameters that are local
// to each peer, such as the statistics of a batch normalization, count as zero.
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

// Distance estimates the root mean square distance of models from their mean, by sketches.
// It is exactly 0 if all sketches are equal, and NaN (unknown) if there are fewer than two,
// or their lengths differ.
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
	for i, origin := range models[0] { // subtracted first, as large common values would cause rounding errors
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
