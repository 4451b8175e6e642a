package nets

import (
	"slices"

	"github.com/seed-97356399/murmuration/tensor"
)

// olderFirst are the first names in models of builds before 23 November 2026.
var olderFirst = []string{"layer0.weight", "conv1.weight", "stem.weight"}

// Older maps the values of a model to those in a file of such a build, which had weights with their outputs last, and
// all weights before the other parameters: value i of the model is value order[i] of the file. It is nil for any
// other file.
func Older(file, model *tensor.Layout) (order []int) {
	if file.Count() == 0 || !slices.Contains(olderFirst, file.At(0).Name) || file.Len() != model.Len() {
		return nil
	}
	var weights, others []tensor.Range
	for _, r := range file.Ranges() {
		if len(r.Shape) > 1 {
			weights = append(weights, r)
		} else {
			others = append(others, r)
		}
	}
	channels := 1 // of the input of the next layer
	for i := range model.Count() {
		to, from := model.At(i), &others
		if len(to.Shape) > 1 {
			from = &weights
		}
		if len(*from) == 0 || (*from)[0].Len != to.Len {
			return nil
		}
		at := (*from)[0]
		*from = (*from)[1:]
		if len(to.Shape) == 1 {
			for j := range to.Len {
				order = append(order, at.Offset+j)
			}
			continue
		}
		outputs := at.Shape[len(at.Shape)-1]
		if outputs != to.Shape[0] {
			return nil
		}
		inputs := to.Shape[1]
		if to.Kind == tensor.Conv {
			channels = outputs
		} else if inputs%channels == 0 { // the order is now channel by channel; it was pixel by pixel
			inputs, channels = channels, 1
		}
		pixels := to.Len / outputs / inputs
		for o := range outputs {
			for c := range inputs {
				for p := range pixels {
					order = append(order, at.Offset+(p*inputs+c)*outputs+o)
				}
			}
		}
	}
	return order
}
