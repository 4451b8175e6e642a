package dataset

import (
	"fmt"

	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/gobolditalic"
	"golang.org/x/image/font/gofont/goitalic"
	"golang.org/x/image/font/gofont/gomedium"
	"golang.org/x/image/font/gofont/gomediumitalic"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/gomonobold"
	"golang.org/x/image/font/gofont/gomonobolditalic"
	"golang.org/x/image/font/gofont/gomonoitalic"
	"golang.org/x/image/font/gofont/goregular"

	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
)

// A picture of the glyphs, mnist and fashion-mnist sets.
const (
	// Side is its height and width in pixels.
	Side = 28
	// Inputs is the number of its pixels.
	Inputs = Side * Side
	// Classes is the number of classes.
	Classes = 10
)

// greyShape is the shape of these pictures.
var greyShape = Shape{Height: Side, Width: Side, Channels: 1}

// glyphScale is the root mean square of the training pictures, with grey levels from 0 to 1.
const glyphScale = 0.286

// Glyphs draws training pictures: digits in six faces of the Go font (regular, medium and bold, upright and italic),
// distorted as type distortion describes. Picture k of a seed does not depend on which others are drawn, so peers
// that agree on a seed can each draw their own shard.
func Glyphs(seed uint64, indices []int32) (*Set, error) {
	return drawSet(seed, indices, seeded.Glyph,
		goregular.TTF, goitalic.TTF, gomedium.TTF, gomediumitalic.TTF, gobold.TTF, gobolditalic.TTF)
}

// HeldOutGlyphs draws n pictures for evaluation, in the four faces of Go Mono, which training never uses. They are
// always the same, so the accuracies of any two runs can be compared.
func HeldOutGlyphs(n int) (*Set, error) {
	return drawSet(0, seeded.Identity(n), seeded.HeldOut,
		gomono.TTF, gomonoitalic.TTF, gomonobold.TTF, gomonobolditalic.TTF)
}

// GlyphLabels are the classes of training pictures 0 to n-1 of a seed. It draws none.
func GlyphLabels(seed uint64, n int) []uint8 {
	labels := make([]uint8, n)
	base := seeded.For(seed, seeded.Glyph)
	for k := range labels {
		labels[k] = glyphLabel(base, uint64(k))
	}
	return labels
}

func glyphLabel(base, k uint64) uint8 {
	return uint8(seeded.Mix(seeded.Mix(base)+k) % Classes)
}

func drawSet(seed uint64, indices []int32, d seeded.Domain, faces ...[]byte) (*Set, error) {
	pen, err := newPen(glyphDistortion, faces)
	if err != nil {
		return nil, err
	}
	base := seeded.For(seed, d)
	pixels := make([]uint8, len(indices)*Inputs)
	labels := make([]uint8, len(indices))
	for i, k := range indices {
		if k < 0 {
			return nil, fmt.Errorf("dataset: drawing picture %d: pictures count from 0", k)
		}
		labels[i] = glyphLabel(base, uint64(k))
		pen.draw(pixels[i*Inputs:(i+1)*Inputs], base, uint64(k), labels[i])
	}
	return NewSet(pixels, labels, greyShape, Classes, Normalization{Scale: glyphScale})
}
