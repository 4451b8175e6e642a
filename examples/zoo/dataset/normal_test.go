package dataset

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
)

// Channels have tables of their own, whatever their number.
func TestLevelsByChannel(t *testing.T) {
	for channels := 1; channels <= 4; channels++ {
		norm := make([]Normalization, channels)
		for c := range norm {
			norm[c] = Normalization{Mean: float32(c) / 10, Scale: float32(c + 1)}
		}
		tables, err := newLevels(channels, norm)
		if err != nil {
			t.Fatal(err)
		}
		pixels := make([]uint8, 5*channels)
		for i := range pixels {
			pixels[i] = uint8(13 * i)
		}
		out := make(tensor.Vector, len(pixels))
		tables.apply(out, pixels)
		for i, g := range pixels {
			n := norm[i%channels]
			if want := (float64(g)/255 - float64(n.Mean)) / float64(n.Scale); math.Abs(float64(out[i])-want) > 1e-6 {
				t.Errorf("%d channels: value %d is %v, want %v", channels, i, out[i], want)
			}
		}
	}
	if _, err := newLevels(3, make([]Normalization, 2)); !errors.Is(err, ErrConfig) {
		t.Errorf("two for three channels: %v", err)
	}
}

func TestMoments(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	m := newMoments(3)
	var sum, square [3]float64
	const pictures, pixels = 50, 40
	for range pictures {
		picture := make([]uint8, 3*pixels)
		for i := range picture {
			g := rng.IntN(80) + 60*(i%3)
			picture[i] = uint8(g)
			sum[i%3] += float64(g) / 255
			square[i%3] += float64(g) / 255 * float64(g) / 255
		}
		m.add(picture)
	}
	for c, n := range m.norm() {
		mean := sum[c] / (pictures * pixels)
		if deviation := math.Sqrt(square[c]/(pictures*pixels) - mean*mean); math.Abs(float64(n.Mean)-mean) > 1e-5 || math.Abs(float64(n.Scale)-deviation) > 1e-5 {
			t.Errorf("channel %d: %v, want %v and %v", c, n, mean, deviation)
		}
	}
	flat := newMoments(1)
	flat.add([]uint8{51, 51})
	if n := flat.norm()[0]; n != (Normalization{Mean: 0.2, Scale: 1}) {
		t.Errorf("one level: %v", n)
	}
}

func TestParseNorm(t *testing.T) {
	for text, want := range map[string][]Normalization{
		"0.5/0.25":                      {{0.5, 0.25}},
		"0.49,0.48,0.45/0.25,0.24,0.26": {{0.49, 0.25}, {0.48, 0.24}, {0.45, 0.26}},
	} {
		got, err := ParseNorm(text)
		if err != nil || !slices.Equal(got, want) || FormatNorm(got) != text {
			t.Errorf("%q became %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0.5", "0.5/", "/1", "0.5/0", "0.5/-1", "0.5/NaN", "Inf/1", "1,2/1", "a/1"} {
		if _, err := ParseNorm(text); !errors.Is(err, ErrConfig) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
