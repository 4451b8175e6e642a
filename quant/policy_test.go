package quant

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/tensor"
)

func layoutOf(t testing.TB, specs ...tensor.Spec) *tensor.Layout {
	t.Helper()
	layout, err := tensor.NewLayout(specs...)
	if err != nil {
		t.Fatal(err)
	}
	return layout
}

func network(t testing.TB) *tensor.Layout {
	return layoutOf(t,
		tensor.Spec{Name: "conv1.weight", Shape: []int{3, 3, 1, 16}, Kind: tensor.Conv},
		tensor.Spec{Name: "conv1.bias", Shape: []int{16}, Kind: tensor.Bias},
		tensor.Spec{Name: "conv2.weight", Shape: []int{3, 3, 4, 32}, Kind: tensor.Conv},
		tensor.Spec{Name: "norm.scale", Shape: []int{32}, Kind: tensor.Norm},
		tensor.Spec{Name: "norm.mean", Shape: []int{32}, Kind: tensor.Norm, Sharing: tensor.Local},
		tensor.Spec{Name: "conv3.weight", Shape: []int{3, 3, 32, 512}, Kind: tensor.Conv},
		tensor.Spec{Name: "dense.weight", Shape: []int{64, 10}},
		tensor.Spec{Name: "dense.bias", Shape: []int{10}, Kind: tensor.Bias},
	)
}

func coded(t testing.TB, name string) coding.Codec {
	t.Helper()
	codec, err := coding.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return codec
}

func planOf(t *testing.T, p Policy) (coding.Plan, []coding.JointLayer) {
	t.Helper()
	layout := network(t)
	if err := p.Validate(layout); err != nil {
		t.Fatal(err)
	}
	layers := coding.JointLayers(layout)
	return p.Plan(layers, coded(t, "lattice6+4")), layers
}

func TestPolicy(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy Policy
		want   string // codecs of the joint layers, in order
	}{
		{"nothing said", Policy{}, "raw raw raw raw"},
		{"sixteen bits", Policy{Codec: "bf16"}, "bf16 bf16 bf16 bf16"},
		{"scales keep 16 bits", Policy{Codec: "int8"}, "int8 fp16 int8 int8"},
		{"by the link", Policy{Codec: Auto, Exact: "raw"}, "lattice6+4 raw lattice6+4 lattice6+4"},
		{"nothing quantized", Policy{Codec: "lattice4+1", Quantized: "0"}, "fp16 fp16 fp16 fp16"},
		{"by class and range", Policy{Codec: "raw", Rules: []Rule{
			{Range: "conv2.weight", Codec: "lattice8+4"}, {Class: "conv", Codec: Auto}, {Class: "norm+bias", Codec: "bf16"},
		}}, "lattice8+4 bf16 lattice6+4 raw"},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan, layers := planOf(t, c.policy)
			var got []string
			for i := range layers {
				got = append(got, plan.Codec(i, 0).Name)
			}
			if names := strings.Join(got, " "); names != c.want {
				t.Errorf("%s, want %s", names, c.want)
			}
		})
	}
}

// Of every hundred slices, as many are quantized as asked for, evenly spread.
func TestProportion(t *testing.T) {
	for _, proportion := range []int{0, 1, 30, 50, 99, 100} {
		plan, _ := planOf(t, Policy{Codec: "int8", Exact: "bf16", Quantized: fmt.Sprint(proportion, "%")})
		quantized := 0
		for turn := range 1000 {
			if plan.Codec(0, turn).Name == "int8" {
				quantized++
			}
			if ideal := float64((turn+1)*proportion) / 100; float64(quantized) < ideal-1 || float64(quantized) > ideal {
				t.Fatalf("%d %%: %d of the first %d slices", proportion, quantized, turn+1)
			}
		}
		wants := map[int]string{0: "[2]", 100: "[4 2]"}
		if want := wants[proportion]; want != "" && fmt.Sprint(plan.Codecs()) != want {
			t.Errorf("%d %%: codecs %v, want %s", proportion, plan.Codecs(), want)
		}
	}
}

func TestPriority(t *testing.T) {
	plan, _ := planOf(t, Policy{Rules: []Rule{{Class: "dense", Priority: 3}, {Class: "conv", Priority: -1}}})
	for layer, want := range []int{-1, 0, -1, 3} {
		if got := plan.Priority(layer); got != want {
			t.Errorf("joint layer %d has priority %d, want %d", layer, got, want)
		}
	}
}

func TestPolicyFaults(t *testing.T) {
	err := Policy{
		Codec: "zip", Exact: "int8", Quantized: "101",
		Rules: []Rule{{Class: "bias", Codec: "lattice", Quantized: "x"}, {Range: "nowhere", Priority: 1001}},
	}.Validate(network(t))
	if !errors.Is(err, ErrPolicy) {
		t.Fatalf("error %v", err)
	}
	for _, want := range []string{
		`codec: "zip" is no codec`, `exact: "int8"`, `quantized: "101"`, `rule 1, class: "bias"`, `rule 1, codec: "lattice"`,
		`rule 1, quantized: "x"`, `rule 2, range: the model has no range "nowhere"`, `rule 2, priority: 1001`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	many := Policy{Rules: make([]Rule, MaxRules+1)}
	if err := many.Validate(nil); !errors.Is(err, ErrPolicy) {
		t.Errorf("%d rules: %v", len(many.Rules), err)
	}
}
