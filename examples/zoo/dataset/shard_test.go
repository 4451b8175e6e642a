package dataset

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
	"github.com/seed-97356399/murmuration/examples/zoo/internal/ztest"
)

func drawShard(t *rapid.T) Shard {
	if rapid.Bool().Draw(t, "iid") {
		return Shard{}
	}
	return Shard{Alpha: math.Pow(10, rapid.Float64Range(-4, 6).Draw(t, "log alpha"))}
}

// Whatever the rule, the parts of a seed are disjoint, cover everything and none
// is empty; iid parts differ by at most one.
func TestPartsPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shard := drawShard(t)
		parts := rapid.IntRange(1, 12).Draw(t, "parts")
		labels := rapid.SliceOfN(rapid.Uint8Range(0, 9), parts, 300).Draw(t, "labels")
		seed := rapid.Uint64().Draw(t, "seed")
		seen := make([]int, len(labels))
		smallest, largest := len(labels), 0
		for part := range parts {
			mine, err := shard.Part(labels, seed, part, parts)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.IsSorted(mine) {
				t.Fatalf("part %d is not ascending", part)
			}
			for _, i := range mine {
				seen[i]++
			}
			smallest, largest = min(smallest, len(mine)), max(largest, len(mine))
		}
		for i, n := range seen {
			if n != 1 {
				t.Fatalf("picture %d is in %d parts", i, n)
			}
		}
		if smallest == 0 {
			t.Fatal("an empty part")
		}
		if shard.Alpha == 0 && largest-smallest > 1 {
			t.Fatalf("iid parts of %d and %d", smallest, largest)
		}
	})
}

// The share of a class that a part gets has the second moment of the Dirichlet
// distribution, E Σp² = (α+1)/(parts·α+1), here over 300 seeds of 10 classes.
func TestSkewIsDirichlet(t *testing.T) {
	const parts, perClass, seeds = 4, 200, 300
	labels := make([]uint8, 10*perClass)
	for i := range labels {
		labels[i] = uint8(i % 10)
	}
	for _, alpha := range []float64{0.1, 0.5, 1, 10} {
		shard := Shard{Alpha: alpha}
		sum := 0.0
		for seed := range uint64(seeds) {
			rng := seeded.Rand(seed, seeded.Shard, parts)
			order := seeded.Identity(len(labels))
			seeded.Shuffle(rng, order)
			var count [10][parts]float64
			for i, p := range shard.deal(rng, labels, order, parts) {
				count[labels[i]][p]++
			}
			for _, class := range count {
				for _, n := range class {
					sum += n * n / (perClass * perClass)
				}
			}
		}
		got := sum / (seeds * 10)
		// A finite urn: the proportions are those of perClass draws.
		limit := (alpha + 1) / (parts*alpha + 1)
		want := limit + (1-limit)/perClass
		if math.Abs(got-want) > 0.015 {
			t.Errorf("alpha %v: mean sum of squares %.4f, want %.4f", alpha, got, want)
		}
	}
}

// All peers must cut alike, on every platform.
func TestPartsAreGolden(t *testing.T) {
	labels := GlyphLabels(7, 1000)
	var out strings.Builder
	for _, rule := range []string{"iid", "dirichlet=0.1", "dirichlet=1"} {
		shard, err := ParseShard(rule)
		if err != nil {
			t.Fatal(err)
		}
		for part := range 3 {
			mine, err := shard.Part(labels, 7, part, 3)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "%s part %d: %d pictures, first %v, %s\n", rule, part, len(mine), mine[:3], ztest.Sum32(fmt.Append(nil, mine)))
		}
	}
	ztest.Golden(t, "parts.txt", out.String())
}

func TestParseShard(t *testing.T) {
	for _, text := range []string{"iid", "dirichlet=0.1", "dirichlet=100"} {
		shard, err := ParseShard(text)
		if err != nil || shard.String() != text {
			t.Errorf("%q became %v, %v", text, shard, err)
		}
	}
	for _, text := range []string{"", "IID", "dirichlet", "dirichlet=", "dirichlet=0", "dirichlet=-1", "dirichlet=NaN", "dirichlet=inf", "dirichlet=1e9", "dirichlet=a"} {
		if shard, err := ParseShard(text); !errors.Is(err, ErrShard) || !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
			t.Errorf("%q: %v, %v", text, shard, err)
		}
	}
}

func TestPartRefuses(t *testing.T) {
	labels := make([]uint8, 5)
	for name, c := range map[string]struct {
		shard       Shard
		part, parts int
	}{
		"no parts":       {Shard{}, 0, 0},
		"part too large": {Shard{}, 3, 3},
		"part negative":  {Shard{}, -1, 3},
		"too many parts": {Shard{}, 0, 6},
		"alpha":          {Shard{Alpha: math.NaN()}, 0, 2},
	} {
		if _, err := c.shard.Part(labels, 1, c.part, c.parts); !errors.Is(err, ErrShard) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
