package checkpoint

import (
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/tensor"
)

// orderOf maps the values of a model to a file's: value i of the model is value order[i] of the file; nil means the
// same order. Tensors are matched by name; if no name is common, by place if all shapes are equal, or by Older.
// renamed tells that names did not match.
func orderOf(file, model *tensor.Layout, older func(file, model *tensor.Layout) []int) (order []int, renamed bool, err error) {
	mismatch := fits(file, model)
	switch {
	case mismatch == nil:
		return byName(file, model), false, nil
	case alike(file, model):
		return nil, true, nil
	case older != nil:
		order = older(file, model)
		outside := func(i int) bool { return i < 0 || i >= file.Len() }
		if len(order) == model.Len() && file.Len() == model.Len() && !slices.ContainsFunc(order, outside) {
			return order, true, nil
		}
	}
	return nil, false, mismatch
}

// byName is the order for a file with the model's tensors; nil if it is the model's order.
func byName(file, model *tensor.Layout) (order []int) {
	if slices.EqualFunc(file.Ranges(), model.Ranges(), func(f, m tensor.Range) bool { return f.Name == m.Name }) {
		return nil
	}
	for _, m := range model.Ranges() {
		from, _ := file.Lookup(m.Name)
		for i := range from.Len {
			order = append(order, from.Offset+i)
		}
	}
	return order
}

// alike tells whether two layouts differ in all names, and in nothing else that a file has.
func alike(file, model *tensor.Layout) bool {
	return slices.EqualFunc(file.Ranges(), model.Ranges(), func(f, m tensor.Range) bool {
		_, common := model.Lookup(f.Name)
		return !common && slices.Equal(f.Shape, m.Shape)
	})
}

// reorder copies values in an order; nil copies them unchanged.
func reorder(to, from tensor.Vector, order []int) {
	if order == nil {
		copy(to, from)
	}
	for i, at := range order {
		to[i] = from[at]
	}
}

// fits returns an error if a file's model does not have the tensors of a layout, in any order.
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
