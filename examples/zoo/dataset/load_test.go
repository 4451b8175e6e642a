package dataset

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/internal/ztest"
)

func TestLoadGlyphsInParts(t *testing.T) {
	const parts = 4
	total := 0
	var first, heldOut *Set
	for part := range parts {
		data, err := Load(t.Context(), Config{Seed: 3, Part: part, Parts: parts})
		if err != nil {
			t.Fatal(err)
		}
		total += data.Train.Len()
		if data.Total != glyphTrain || data.HeldOut.Len() != glyphHeldOut {
			t.Fatalf("part %d: %d in total, %d held out", part, data.Total, data.HeldOut.Len())
		}
		if part == 0 {
			first, heldOut = data.Train, data.HeldOut
			continue
		}
		if bytes.Equal(data.Train.Image(0), first.Image(0)) {
			t.Errorf("parts 0 and %d start alike", part)
		}
		if !bytes.Equal(data.HeldOut.pixels, heldOut.pixels) {
			t.Errorf("part %d has other held-out pictures", part)
		}
	}
	if total != glyphTrain {
		t.Errorf("the parts have %d pictures, want %d", total, glyphTrain)
	}
}

func TestLoadGlyphsAlone(t *testing.T) {
	load := func(peer uint64) *Set {
		data, err := Load(t.Context(), Config{Name: "glyphs", PeerSeed: peer})
		if err != nil {
			t.Fatal(err)
		}
		return data.Train
	}
	one, two := load(1), load(2)
	if one.Len() != glyphTrain/loneParts || two.Len() != one.Len() {
		t.Errorf("quarters of %d and %d", one.Len(), two.Len())
	}
	if bytes.Equal(one.pixels, two.pixels) {
		t.Error("two peers have one quarter")
	}
	if !bytes.Equal(one.pixels, load(1).pixels) {
		t.Error("one peer has two quarters")
	}
}

func TestLoadSkewedGlyphs(t *testing.T) {
	data, err := Load(t.Context(), Config{Seed: 1, Parts: 4, Shard: Shard{Alpha: 0.1}})
	if err != nil {
		t.Fatal(err)
	}
	var count [Classes]int
	for i := range data.Train.Len() {
		count[data.Train.Label(i)]++
	}
	largest := 0
	for _, n := range count {
		largest = max(largest, n)
	}
	if largest < data.Train.Len()/5 {
		t.Errorf("labels %v are not skewed", count)
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"unknown name":      {Config{Name: "imagenet"}, "glyphs, mnist, fashion-mnist"},
		"negative parts":    {Config{Parts: -1}, "-1 parts"},
		"part without":      {Config{Part: 2}, "number of parts"},
		"skew without part": {Config{Shard: Shard{Alpha: 0.1}}, "dirichlet=0.1"},
		"part too large":    {Config{Part: 4, Parts: 4}, "part 4 of 4"},
		"alpha":             {Config{Parts: 2, Shard: Shard{Alpha: -1}}, "alpha -1"},
		"all at once":       {Config{Name: "x", Parts: -1}, "parts"},
	} {
		_, err := Load(t.Context(), c.config)
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, ErrConfig) && !errors.Is(err, ErrShard) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestFilesOnThisMachine(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			dir := ztest.DataDir(t, f.name)
			data, err := Load(t.Context(), Config{Name: f.name, Dir: dir, Part: 1, Parts: 3})
			if err != nil {
				t.Fatal(err)
			}
			if data.Total != 60000 || data.Train.Len() != 20000 || data.HeldOut.Len() != 10000 {
				t.Errorf("%d of %d training pictures, %d held out", data.Train.Len(), data.Total, data.HeldOut.Len())
			}
			squares := 0.0
			for _, g := range data.Train.pixels {
				x := float64(data.Train.levels[0][g])
				squares += x * x
			}
			if rms := math.Sqrt(squares / float64(len(data.Train.pixels))); math.Abs(rms-1) > 0.01 {
				t.Errorf("the root mean square of what a model sees is %.4f, want 1", rms)
			}
		})
	}
}
