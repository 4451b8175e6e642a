package tensor

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Sharing says how a range takes part in training and exchange.
type Sharing uint8

const (
	// Shared ranges are trained and averaged with neighbours.
	Shared Sharing = iota
	// Frozen ranges never change and are never sent.
	Frozen
	// Local ranges are trained and never exchanged: the statistics of batch
	// normalization, or an adapter that is this peer's own.
	Local
)

// String returns the name of the sharing in lower case.
func (s Sharing) String() string {
	switch s {
	case Shared:
		return "shared"
	case Frozen:
		return "frozen"
	case Local:
		return "local"
	default:
		return fmt.Sprintf("sharing(%d)", uint8(s))
	}
}

// Kind says what a range's values do in the model. Consecutive ranges of one kind are coded alike (biases and norms,
// which are few, keep more bits).
type Kind uint8

const (
	// Dense is the matrix of a fully connected layer, and anything that is of no other kind.
	Dense Kind = iota
	// Conv is the kernel of a convolution.
	Conv
	// Norm is the scale or shift of a normalization; its statistics are of kind Statistic.
	Norm
	// Bias is a vector that a layer adds.
	Bias
	// Embedding is a table of vectors of which a batch touches few.
	Embedding
	// Statistic is a value that a layer measures as it computes, such as the running mean and variance of a batch
	// normalization. In a gradient, its place holds the change to add, to which no optimizer, decay or clip applies.
	// Its sharing is usually Local.
	Statistic
)

// String returns the name of the kind in lower case.
func (k Kind) String() string {
	switch k {
	case Dense:
		return "dense"
	case Conv:
		return "conv"
	case Norm:
		return "norm"
	case Bias:
		return "bias"
	case Embedding:
		return "embedding"
	case Statistic:
		return "statistic"
	default:
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
}

// Spec describes one range of a Layout.
type Spec struct {
	// Name is unique in its layout: 1 to 256 bytes of UTF-8, and not "__metadata__", which safetensors files
	// reserve.
	Name string
	// Shape is the range's dimensions, slowest first (row-major), each at least
	// 1, and at most 8 of them. No dimensions mean one value.
	Shape []int
	// Kind and Sharing may stay zero: Dense and Shared.
	Kind    Kind
	Sharing Sharing
}

// validate returns the number of values of s, or an error that joins all its faults.
func (s *Spec) validate() (int, error) {
	var faults []error
	switch {
	case s.Name == "":
		faults = append(faults, errors.New("the name is empty"))
	case s.Name == reservedName:
		faults = append(faults, errors.New("the name is reserved by the safetensors format"))
	case len(s.Name) > maxNameLen:
		faults = append(faults, fmt.Errorf("the name has %d bytes: the limit is %d", len(s.Name), maxNameLen))
	case !utf8.ValidString(s.Name):
		faults = append(faults, errors.New("the name is not UTF-8"))
	}
	if s.Kind > Statistic {
		faults = append(faults, fmt.Errorf("unknown %v", s.Kind))
	}
	if s.Sharing > Local {
		faults = append(faults, fmt.Errorf("unknown %v", s.Sharing))
	}
	n, err := shapeLen(s.Shape)
	if err != nil {
		faults = append(faults, err)
	}
	return n, errors.Join(faults...)
}

// shapeLen returns the number of values of a shape: the product of its
// dimensions.
func shapeLen(shape []int) (int, error) {
	if len(shape) > maxDims {
		return 0, fmt.Errorf("%d dimensions: the limit is %d", len(shape), maxDims)
	}
	n := 1
	for _, d := range shape {
		if d <= 0 {
			return 0, fmt.Errorf("shape %v: dimensions must be at least 1", shape)
		}
		if d > maxLen/n {
			return 0, fmt.Errorf("shape %v: more than %d values", shape, maxLen)
		}
		n *= d
	}
	return n, nil
}
