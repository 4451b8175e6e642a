package dataset

import (
	"fmt"

	"github.com/seed-97356399/murmuration/tensor"
)

// NewRows makes a set of len(labels) rows of numbers, one after the other, which models take unchanged; labels are
// below classes. The set keeps both slices, which must not change any more. Its Shape is one line of inputs pixels,
// for models that are not for pictures.
func NewRows(numbers tensor.Vector, labels []uint8, inputs, classes int) (*Set, error) {
	if inputs < 1 || classes < 1 || classes > maxClasses {
		return nil, fmt.Errorf("dataset: a set of %d numbers a row and %d classes: want at least 1 number and 1 to %d classes", inputs, classes, maxClasses)
	}
	if len(numbers) != len(labels)*inputs {
		return nil, fmt.Errorf("dataset: %d labels of %d numbers each need %d, got %d", len(labels), inputs, len(labels)*inputs, len(numbers))
	}
	for i, label := range labels {
		if int(label) >= classes {
			return nil, fmt.Errorf("dataset: label %d of row %d: there are %d classes", label, i, classes)
		}
	}
	if !tensor.Finite(numbers) {
		return nil, fmt.Errorf("dataset: a row has numbers that are missing, infinite or too large")
	}
	if numbers == nil {
		numbers = tensor.Vector{}
	}
	return &Set{numbers: numbers, labels: labels, shape: Shape{Height: 1, Width: inputs, Channels: 1}, inputs: inputs, classes: classes}, nil
}

// row is row i of a set of rows; nil in a set of pictures.
func (s *Set) row(i int) tensor.Vector {
	if s.numbers == nil {
		return nil
	}
	return s.numbers[i*s.inputs : (i+1)*s.inputs]
}

// show writes an example as the input of a model; a picture is varied by augment unless that is nil.
func (s *Set) show(out tensor.Vector, i int, augment *augmenter) {
	switch picture := s.Image(i); {
	case s.numbers != nil:
		copy(out, s.row(i))
	case augment != nil:
		s.levels.apply(out, augment.vary(picture))
	default:
		s.levels.apply(out, picture)
	}
}
