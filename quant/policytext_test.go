package quant

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/coding"
)

func TestExplain(t *testing.T) {
	got := Policy{
		Codec: Auto, Quantized: "50%",
		Rules: []Rule{{Range: "conv3.weight", Codec: "bf16"}, {Class: "dense", Codec: "int8", Quantized: "100", Priority: 3}, {Class: "conv", Quantized: "0"}},
	}.Explain(network(t))
	want := []string{
		"conv: conv1.weight to conv2.weight, 1296 values: fp16",
		"norm+bias: conv1.bias to dense.bias, 58 values: fp16",
		"conv: conv3.weight, 147456 values: bf16",
		"dense: dense.weight, 640 values: int8, priority 3",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	half := Policy{Codec: Auto, Exact: "bf16", Quantized: "50"}.Explain(network(t))
	if want := "dense: dense.weight, 640 values: auto for 50 % of the slices, bf16 for the others"; half[3] != want {
		t.Errorf("%q, want %q", half[3], want)
	}
}

// TestEffectivePlansTheSame: writing the defaults out changes nothing.
func TestEffectivePlansTheSame(t *testing.T) {
	layers := coding.JointLayers(network(t))
	codecs := append(Names(), Auto, "")
	percents := []string{"", "0", "37", "100%"}
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{
			Codec: rapid.SampledFrom(codecs).Draw(t, "codec"), Quantized: rapid.SampledFrom(percents).Draw(t, "quantized"),
			Exact: rapid.SampledFrom([]string{"", "raw", "bf16", "fp16"}).Draw(t, "exact"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "rules") {
			p.Rules = append(p.Rules, Rule{
				Class: rapid.SampledFrom([]string{"", "conv", "dense", "norm+bias"}).Draw(t, "class"),
				Codec: rapid.SampledFrom(codecs).Draw(t, "its codec"), Quantized: rapid.SampledFrom(percents).Draw(t, "its share"),
			})
		}
		chosen, _ := coding.ByID(coding.Lattice8to4)
		plan, effective := p.Plan(layers, chosen), p.Effective().Plan(layers, chosen)
		for layer := range layers {
			for turn := range 100 {
				if a, b := plan.Codec(layer, turn), effective.Codec(layer, turn); a.ID != b.ID {
					t.Fatalf("%+v: joint layer %d, slice %d: %s, with defaults written out %s", p, layer, turn, a.Name, b.Name)
				}
			}
		}
	})
}
