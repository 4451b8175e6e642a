package dataset

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
)

// cropPadding bounds how far a crop moves a picture, in pixels in each direction.
const cropPadding = 4

// Augment says how training pictures are varied from one pass to the next. The zero value does not vary them.
type Augment struct {
	// Flip mirrors every other picture, left to right.
	Flip bool
	// Crop adds four black pixels on each side of a picture and cuts out a random part of the original size.
	Crop bool
}

// ParseAugment reads "none", "flip", "crop" or "flip+crop".
func ParseAugment(text string) (Augment, error) {
	for _, a := range []Augment{{}, {Flip: true}, {Crop: true}, {Flip: true, Crop: true}} {
		if text == a.String() {
			return a, nil
		}
	}
	return Augment{}, fmt.Errorf("%w: augmentation %q: want none, flip, crop or flip+crop", ErrConfig, text)
}

// String is the text that ParseAugment reads.
func (a Augment) String() string {
	var parts []string
	if a.Flip {
		parts = append(parts, "flip")
	}
	if a.Crop {
		parts = append(parts, "crop")
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, "+")
}

// augmenter varies pictures by its own seed, so it does not change the order of the pictures. Not safe for concurrent
// use.
type augmenter struct {
	Augment
	shape   Shape
	rng     *rand.Rand
	picture []uint8
}

func newAugmenter(a Augment, shape Shape, seed uint64) *augmenter {
	v := &augmenter{Augment: a, shape: shape, rng: seeded.Rand(seed, seeded.Augment, 0)}
	if a != (Augment{}) {
		v.picture = make([]uint8, shape.Values())
	}
	return v
}

// vary returns a variant of a picture, valid until the next call, or the picture itself.
func (v *augmenter) vary(pixels []uint8) []uint8 {
	if v.Augment == (Augment{}) {
		return pixels
	}
	flip, down, right := false, 0, 0
	if v.Flip {
		flip = v.rng.IntN(2) == 1
	}
	if v.Crop {
		down = v.rng.IntN(2*cropPadding+1) - cropPadding
		right = v.rng.IntN(2*cropPadding+1) - cropPadding
	}
	v.shift(pixels, down, right)
	if flip {
		v.mirror()
	}
	return v.picture
}

// shift moves a picture; pixels from outside are black.
func (v *augmenter) shift(pixels []uint8, down, right int) {
	width, channels := v.shape.Width, v.shape.Channels
	row := width * channels
	kept := max(width-abs(right), 0)
	from, to := max(-right, 0)*channels, max(right, 0)*channels
	for y := range v.shape.Height {
		out := v.picture[y*row : (y+1)*row]
		source := y - down
		if kept == 0 || source < 0 || source >= v.shape.Height {
			clear(out)
			continue
		}
		clear(out[:to])
		copy(out[to:], pixels[source*row+from:source*row+from+kept*channels])
		clear(out[to+kept*channels:])
	}
}

// mirror mirrors the varied picture, left to right.
func (v *augmenter) mirror() {
	width, channels := v.shape.Width, v.shape.Channels
	row := width * channels
	for y := range v.shape.Height {
		line := v.picture[y*row : (y+1)*row]
		for l, r := 0, row-channels; l < r; l, r = l+channels, r-channels {
			for c := range channels {
				line[l+c], line[r+c] = line[r+c], line[l+c]
			}
		}
	}
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
