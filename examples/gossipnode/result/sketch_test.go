package result

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/tensor"
)

// truth is the root mean square distance of models from their mean.
func truth(models []tensor.Vector) float64 {
	squared, n := 0.0, float64(len(models))
	for i := range models[0] {
		mean := 0.0
		for _, m := range models {
			mean += float64(m[i]) / n
		}
		for _, m := range models {
			squared += (float64(m[i]) - mean) * (float64(m[i]) - mean)
		}
	}
	return math.Sqrt(squared / n)
}

// TestDistance compares the distance by sketches with the truth: for models as near as
// rounding lets them come and far apart, of more parameters than a sketch and of fewer.
func TestDistance(t *testing.T) {
	for _, c := range []struct {
		parameters, peers int
		apart, within     float64
	}{
		{20_000, 2, 1e-6, 0.05}, {20_000, 2, 0.01, 0.05}, {20_000, 8, 1, 0.05}, {200_000, 3, 0.1, 0.05}, {100, 4, 0.1, 1e-9},
	} {
		draw := rand.New(rand.NewPCG(1, uint64(c.parameters)))
		origin, models, sketches := make(tensor.Vector, c.parameters), make([]tensor.Vector, c.peers), make([]Sketch, c.peers)
		for i := range origin {
			origin[i] = float32(draw.NormFloat64())
		}
		for p := range models {
			models[p] = make(tensor.Vector, c.parameters)
			for i := range models[p] {
				models[p][i] = origin[i] + float32(c.apart*draw.NormFloat64())
			}
			text, err := json.Marshal(SketchOf(models[p])) // as a peer of local reports it
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &sketches[p]); err != nil {
				t.Fatal(err)
			}
			if longest := 50_000; len(text) > longest {
				t.Errorf("a sketch of %d bytes, want at most %d: a line of a peer's output is cut at 65536", len(text), longest)
			}
		}
		if got, want := float64(Distance(sketches)), truth(models); math.Abs(got-want) > c.within*want {
			t.Errorf("%+v: %g, the truth is %g", c, got, want)
		}
		same := []Sketch{sketches[0], sketches[0], sketches[0]}
		if d := Distance(same); d != 0 {
			t.Errorf("%+v: %v between a model and itself", c, d)
		}
	}
}

// TestDistanceOfShared: what each peer keeps to itself sets no models apart.
func TestDistanceOfShared(t *testing.T) {
	layout, err := tensor.NewLayout(
		tensor.Spec{Name: "weight", Shape: []int{2}},
		tensor.Spec{Name: "mean", Shape: []int{2}, Kind: tensor.Statistic, Sharing: tensor.Local})
	if err != nil {
		t.Fatal(err)
	}
	a, b := tensor.NewParams(layout), tensor.NewParams(layout)
	copy(a.Vector(), tensor.Vector{1, 2, 3, 4})
	copy(b.Vector(), tensor.Vector{1, 2, 7, 9})
	if d := Distance([]Sketch{SketchOfShared(a), SketchOfShared(b)}); d != 0 {
		t.Errorf("distance %v of models that differ in local ranges only", d)
	}
	b.Vector()[0] = 3
	if d := Distance([]Sketch{SketchOfShared(a), SketchOfShared(b)}); d != 1 {
		t.Errorf("distance %v, want 1", d)
	}
}

// TestDistanceUnknown: where there is nothing to compare the distance is no number.
func TestDistanceUnknown(t *testing.T) {
	nan := math.NaN()
	for _, models := range [][]Sketch{nil, {{1}}, {{1}, {1, 2}}, {{}, {}}, {{1}, nil}, {{nan}, {1}}} {
		if d := Distance(models); !math.IsNaN(float64(d)) {
			t.Errorf("%v: %v", models, d)
		}
	}
	var s Sketch
	for _, text := range []string{`"?"`, `"AAAA"`, `"` + strings.Repeat("A", 65536) + `"`} {
		if json.Unmarshal([]byte(text), &s) == nil {
			t.Errorf("%.10s is taken for a sketch", text)
		}
	}
}

// TestApartInWords: the distance is told with how it is known, or why it is not, and
// proposals that were refused apart from exchanges that failed.
func TestApartInWords(t *testing.T) {
	unknown := cli.Number(math.NaN())
	for _, c := range []struct {
		result Result
		want   string
	}{
		{Result{Exchanges: 3, ConsensusDistance: 0.25, ConsensusPeers: 4}, "Models 0.25 apart, measured at the end over the 4 peers that finished.\n"},
		{Result{Exchanges: 3, ConsensusPeers: 4}, "The models of the 4 peers that finished are the same.\n"},
		{Result{Exchanges: 3, Peer: "a"}, "all that took part in the final merge are the same"},
		{Result{Exchanges: 3, Peer: "a", ConsensusDistance: unknown}, "unknown: the others' last exchanges"},
		{Result{Exchanges: 3, ConsensusDistance: unknown}, "unknown: fewer than two"},
		{Result{Exchanges: 3, ConsensusDistance: 0.5}, "Models 0.5 apart at the end.\n"},
		{Result{Exchanges: 3, Failed: 1, Refused: 2, Codec: "raw"}, "3 exchanges, 1 failed, 0 B sent as raw; 2 proposals refused, as busy partners do.\n"},
		{Result{Exchanges: 3, Failed: 1, Codec: "raw"}, "3 exchanges, 1 failed, 0 B sent as raw.\n"},
	} {
		if text := c.result.String(); !strings.Contains(text, c.want) {
			t.Errorf("%q is not in\n%s", c.want, text)
		}
	}
	if text := (Result{ConsensusDistance: unknown, Peer: "a"}).String(); strings.Contains(text, "apart") {
		t.Errorf("one that met nobody:\n%s", text)
	}
}
