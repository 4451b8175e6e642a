package coding

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

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
		tensor.Spec{Name: "norm.mean", Shape: []int{32}, Kind: tensor.Statistic, Sharing: tensor.Local},
		tensor.Spec{Name: "conv3.weight", Shape: []int{3, 3, 32, 512}, Kind: tensor.Conv},
		tensor.Spec{Name: "dense.weight", Shape: []int{64, 10}},
		tensor.Spec{Name: "dense.bias", Shape: []int{10}, Kind: tensor.Bias},
		tensor.Spec{Name: "dense.counted", Kind: tensor.Statistic},
	)
}

func TestJointLayers(t *testing.T) {
	var got []string
	for _, l := range JointLayers(network(t)) {
		got = append(got, fmt.Sprint(l, " ", l.Segments))
	}
	want := []string{
		"conv: conv1.weight to conv2.weight, 1296 values [{0 144} {160 1152}]",
		"norm+bias: conv1.bias to dense.counted, 59 values [{144 16} {1312 32} {149472 11}]",
		"conv: conv3.weight, 147456 values [{1376 147456}]",
		"dense: dense.weight, 640 values [{148832 640}]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Every shared value belongs to exactly one segment, every other to none.
func TestJointLayersCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var specs []tensor.Spec
		for i := range rapid.IntRange(0, 12).Draw(t, "ranges") {
			specs = append(specs, tensor.Spec{
				Name: fmt.Sprint(i), Shape: []int{rapid.IntRange(1, 200).Draw(t, "length")},
				Kind:    tensor.Kind(rapid.IntRange(0, 5).Draw(t, "kind")),
				Sharing: tensor.Sharing(rapid.IntRange(0, 2).Draw(t, "sharing")),
			})
		}
		layout, err := tensor.NewLayout(specs...)
		if err != nil {
			t.Fatal(err)
		}
		owner := make([]int, layout.Len())
		for i, l := range JointLayers(layout) {
			total := 0
			for _, s := range l.Segments {
				total += s.Len
				for j := s.Offset; j < s.Offset+s.Len; j++ {
					if owner[j] != 0 {
						t.Fatalf("value %d belongs to two joint layers", j)
					}
					owner[j] = i + 1
				}
			}
			if total != l.Len {
				t.Fatalf("%v has segments of %d values", l, total)
			}
		}
		for _, r := range layout.Ranges() {
			for j := r.Offset; j < r.Offset+r.Len; j++ {
				if (owner[j] > 0) != (r.Sharing == tensor.Shared) {
					t.Fatalf("value %d of %v range %q has owner %d", j, r.Sharing, r.Name, owner[j])
				}
			}
		}
	})
}
