package nets

import (
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestOlder: each value of a model has a place of its own in an older build's file; a kernel of
// a channel by itself lies where it did; and no other file is taken for one. What such builds
// really wrote is in package workload.
func TestOlder(t *testing.T) {
	model, err := ByName("mobilenet-small", dataset.Shape{Height: 28, Width: 28, Channels: 1}, 10)
	if err != nil {
		t.Fatal(err)
	}
	var weights, others []tensor.Spec
	for _, r := range model.Layout().Ranges() {
		name := "stem.weight"
		if len(weights) > 0 {
			name = "then " + r.Name
		}
		switch s := r.Shape; {
		case len(s) == 1:
			others = append(others, tensor.Spec{Name: name, Shape: s})
		case len(s) == 4 && s[1] == 1 && len(weights) > 0: // depthwise
			weights = append(weights, tensor.Spec{Name: name, Shape: []int{3, 3, s[0]}})
		case len(s) == 4:
			weights = append(weights, tensor.Spec{Name: name, Shape: []int{s[2], s[3], s[1], s[0]}})
		default:
			weights = append(weights, tensor.Spec{Name: name, Shape: []int{s[1], s[0]}})
		}
	}
	file, err := tensor.NewLayout(append(weights, others...)...)
	if err != nil {
		t.Fatal(err)
	}
	order := Older(file, model.Layout())
	places := slices.Sorted(slices.Values(order))
	for i, at := range places {
		if i != at {
			t.Fatalf("of %d values some lie at the same place", len(order))
		}
	}
	depthwise, _ := model.Layout().Lookup("3.weight")
	if got, want := order[depthwise.Offset+9*5+7], file.At(1).Offset+16*7+5; len(places) != model.Layout().Len() || got != want {
		t.Errorf("%d values; pixel 7 of channel 5 lies at %d, want %d", len(order), got, want)
	}
	if Older(model.Layout(), model.Layout()) != nil {
		t.Error("a file of today is taken for an older one")
	}
	cnn, _ := ByName("cnn", dataset.Shape{Height: 28, Width: 28, Channels: 1}, 10)
	if Older(file, cnn.Layout()) != nil {
		t.Error("a file of another model is taken for this one's")
	}
}
