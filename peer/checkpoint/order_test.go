package checkpoint

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestModelsThatLieOtherwise: tensors are told apart by name, wherever they lie; by place where
// no name is common and all shapes are alike; or as the caller knows. The optimizer's vectors
// follow.
func TestModelsThatLieOtherwise(t *testing.T) {
	spec := func(name string, shape ...int) tensor.Spec { return tensor.Spec{Name: name, Shape: shape} }
	model, _ := tensor.NewLayout(spec("a", 2, 1), spec("b", 1))
	for name, c := range map[string]struct {
		file  []tensor.Spec // holds 1, 2, 3; its velocity 10, 20, 30
		older []int
		want  tensor.Vector // nil is a refusal
		named bool          // as the model
	}{
		"as it is":               {file: []tensor.Spec{spec("a", 2, 1), spec("b", 1)}, want: tensor.Vector{1, 2, 3}, named: true},
		"moved":                  {file: []tensor.Spec{spec("b", 1), spec("a", 2, 1)}, want: tensor.Vector{2, 3, 1}, named: true},
		"renamed":                {file: []tensor.Spec{spec("x", 2, 1), spec("y", 1)}, want: tensor.Vector{1, 2, 3}},
		"renamed and moved":      {file: []tensor.Spec{spec("y", 1), spec("x", 2, 1)}},
		"names exchanged":        {file: []tensor.Spec{spec("a", 1), spec("b", 2, 1)}},
		"one renamed":            {file: []tensor.Spec{spec("a", 2, 1), spec("y", 1)}},
		"known":                  {file: []tensor.Spec{spec("y", 1), spec("x", 1, 2)}, older: []int{2, 1, 0}, want: tensor.Vector{3, 2, 1}},
		"known, but for a value": {file: []tensor.Spec{spec("y", 1), spec("x", 1, 2)}, older: []int{2, 1}},
		"known to lie outside":   {file: []tensor.Spec{spec("y", 1), spec("x", 1, 2)}, older: []int{2, 1, 3}},
		"longer":                 {file: []tensor.Spec{spec("y", 1), spec("x", 1, 3)}, older: []int{2, 1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			written := testFolder(t)
			written.Build = "v1"
			if err := written.Probe(); err != nil {
				t.Fatal(err)
			}
			plain, err := tensor.NewLayout(c.file...)
			if err != nil {
				t.Fatal(err)
			}
			whole, _ := tensor.NewLayout(append(c.file, spec(optimizerPrefix+"velocity", plain.Len()))...)
			all := tensor.NewParams(whole)
			for i := range plain.Len() {
				all.Vector()[i], all.Vector()[plain.Len()+i] = float32(i+1), float32(10*(i+1))
			}
			metadata := written.describe(plain, time.Now())
			if err := progressMetadata(metadata, behindOf(3), optim.State{Kind: "sgd"}); err != nil {
				t.Fatal(err)
			}
			Seal(metadata, all)
			path, err := written.save(all, metadata)
			if err != nil {
				t.Fatal(err)
			}
			exported, _, _ := parts(all)
			values := tensor.NewParams(model)
			if err := (&File{Tensors: exported}).Load(values); (err == nil) != c.named || c.named && !slices.Equal(values.Vector(), c.want) {
				t.Errorf("of its model are loaded %v, %v", values.Vector(), err)
			}
			reading, params := written, tensor.NewParams(model)
			reading.Build, reading.Older = "v2", func(_, _ *tensor.Layout) []int { return c.older }
			taken, err := Read(reading, path, params)
			if c.want == nil {
				if err == nil || !strings.Contains(err.Error(), `written by build "v1" and read by "v2"`) || tensor.MaxAbs(params.Vector()) > 0 {
					t.Errorf("%v, and values %v", err, params.Vector())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			times := slices.Clone(taken.Optimizer.Vectors["velocity"])
			for i := range times {
				times[i] /= 10
			}
			if !slices.Equal(params.Vector(), c.want) || !slices.Equal(times, c.want) || taken.Older == c.named {
				t.Errorf("values %v, velocity %v, older %v; want %v", params.Vector(), taken.Optimizer.Vectors, taken.Older, c.want)
			}
		})
	}
}
