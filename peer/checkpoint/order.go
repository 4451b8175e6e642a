package checkpoint

import (
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/tensor"
)

// orderOf tells which of a file's values each value of a model is, nil where they lie alike:
// by name; if no name is common, place by place where all shapes are alike; or as Older knows.
// Renamed is whether it was not by name.
func orderOf(file, model *tensor.Layout, older func(file, model *tensor.Layout) []int) (order []int, renamed bool, err error) {
	mismatch := fits(file, model)
	if mismatch == nil && inPlace(file, model) {
		return nil, false, nil
	}
	if mismatch == nil {
		order = make([]int, 0, model.Len())
		for i := range model.Count() {
			from, _ := file.Lookup(model.At(i).Name)
			for j := range from.Len {
				order = append(order, from.Offset+j)
			}
		}
		return order, false, nil
	}
	if alike(file, model) {
		return nil, true, nil
	}
	if older != nil {
		order = older(file, model)
		outside := func(i int) bool { return i < 0 || i >= file.Len() }
		if len(order) == model.Len() && file.Len() == model.Len() && !slices.ContainsFunc(order, outside) {
			return order, true, nil
		}
	}
	return nil, false, mismatch
}

// inPlace tells whether two layouts that fit have all names in the same order.
func inPlace(file, model *tensor.Layout) bool {
	for i := range model.Count() {
		if file.At(i).Name != model.At(i).Name {
			return false
		}
	}
	return true
}

// alike tells whether two layouts differ in all names and in nothing else that a file knows.
func alike(file, model *tensor.Layout) bool {
	if file.Count() != model.Count() {
		return false
	}
	for i := range file.Count() {
		if _, common := model.Lookup(file.At(i).Name); common || !slices.Equal(file.At(i).Shape, model.At(i).Shape) {
			return false
		}
	}
	return true
}

// reorder copies values in an order, as they are if it is nil.
func reorder(to, from tensor.Vector, order []int) {
	if order == nil {
		copy(to, from)
	}
	for i, at := range order {
		to[i] = from[at]
	}
}

// fits tells what keeps a file's model from being of a layout, in whichever order.
func fits(model, layout *tensor.Layout) error {
	for _, want := range layout.Ranges() {
		at, ok := model.Lookup(want.Name)
		if !ok {
			return fmt.Errorf("tensor %q is not in the file", want.Name)
		}
		if !slices.Equal(at.Shape, want.Shape) {
			return fmt.Errorf("tensor %q has shape %v in the file, %v in the model", want.Name, at.Shape, want.Shape)
		}
	}
	if more := model.Count() - layout.Count(); more > 0 {
		return fmt.Errorf("the file has %d tensors more than the model", more)
	}
	return nil
}
